PARAM name AS string LIKE "Ann" DESCRIPTION "First name"
PARAM city AS string LIKE "Rome" DESCRIPTION "Where from"
PARAM Name AS string LIKE "Lee" DESCRIPTION "Last name"
DESCRIPTION "The same parameter twice"
TALK name + city
