PARAM true AS boolean LIKE false DESCRIPTION "Whether it is so"
PARAM else AS string LIKE "nothing" DESCRIPTION "What is wanted otherwise"
PARAM next AS string LIKE "tomorrow" DESCRIPTION "When it is wanted next"
DESCRIPTION "Words of the language as the names of parameters; next may be one"
RETURN next
