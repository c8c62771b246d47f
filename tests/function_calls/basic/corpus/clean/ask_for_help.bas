PARAM person AS string LIKE "Ann" DESCRIPTION "Who needs help"
DESCRIPTION "Finds somebody who can help"
CALL "log_event.bas", "help wanted by " + person
helper = CALL "find_helper", person
TALK person + ", please ask " + helper
RETURN helper
