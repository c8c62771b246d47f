DESCRIPTION "Ask with a default and with free answers"
HEAR city WITH "Which city?" DEFAULT "Oslo"
TALK "Which colour?"
HEAR colour AS "red", "blue", *
TALK city + " " + colour
