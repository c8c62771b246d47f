PARAM city AS string LIKE "Rome" DESCRIPTION "City to look up"
DESCRIPTION
TALK city
