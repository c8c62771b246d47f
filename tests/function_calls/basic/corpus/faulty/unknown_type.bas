PARAM picture AS blob LIKE "x" DESCRIPTION "A picture"
DESCRIPTION "Uses a type that does not exist"
TALK "thanks"
