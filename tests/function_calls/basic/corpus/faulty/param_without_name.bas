DESCRIPTION "A parameter has no name"
PARAM AS string LIKE "Ann" DESCRIPTION "Name of the person"
TALK "hello"
