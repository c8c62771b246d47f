PARAM 2nd_name AS string LIKE "Ann" DESCRIPTION "Second name"
PARAM last-name AS string LIKE "Lee" DESCRIPTION "Last name"
PARAM city AS string LIKE "Rome" DESCRIPTION "City"
DESCRIPTION "Names that are no names"
TALK city
