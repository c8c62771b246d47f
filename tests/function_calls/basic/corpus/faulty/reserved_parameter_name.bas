PARAM next AS string LIKE "tomorrow" DESCRIPTION "Which one is next"
DESCRIPTION "A keyword as the name of a parameter"
TALK "ok"
