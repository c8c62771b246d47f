PARAM city AS LIKE "Rome" DESCRIPTION "City to look up"
DESCRIPTION "A type is announced and not given"
TALK city
