PARAM nickname AS string LIKE "Bo" DESCRIPTION "Nickname, if there is one" OPTIONAL
DESCRIPTION "What is empty and what is not"

TALK NVL(nickname, "nobody")
TALK IIF(ISEMPTY(""), "empty", "full")
TALK IIF(ISEMPTY([]), "empty", "full")
TALK IIF(ISEMPTY("x"), "empty", "full")

record = { name: "Al", phone: NULL }
IF record.phone IS NULL THEN TALK "no phone"
IF record.name IS NOT NULL THEN TALK "a name"
IF NOT record.fax THEN TALK "no fax"
IF record.phone = NULL THEN TALK "still no phone"
IF "" THEN TALK "wrong" ELSE TALK "an empty text is false"
IF 0 THEN TALK "wrong" ELSE TALK "zero is false"
rows = FIND "nothing_here.csv"
IF NOT rows THEN TALK "no rows"
RETURN NULL
