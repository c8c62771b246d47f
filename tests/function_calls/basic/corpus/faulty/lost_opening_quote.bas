PARAM who AS string LIKE Ann" DESCRIPTION "Who it is"
DESCRIPTION "Greets"
TALK who
