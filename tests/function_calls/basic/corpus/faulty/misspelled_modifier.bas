PARAM city AS string LIEK "Rome" DESCRIPTION "City to look up"
DESCRIPTION "A modifier is misspelled"
TALK city
