PARAM name AS string LIKE "Jürgen Größl" DESCRIPTION "Vollständiger Name"
PARAM stadt AS string LIKE "Köln" DESCRIPTION "Wohnort"
DESCRIPTION "Begrüßt ein neues Mitglied des Vereins »Grüne Füße«"

' Länge in Zeichen, nicht in Bytes
länge = LEN(name)
TALK "Schön, dass Du da bist, " + name + " aus " + stadt + "!"
TALK "Dein Name hat ${länge} Zeichen und heißt groß " + UCASE(name) + "."
IF INSTR(stadt, "ö") > 0 THEN
    TALK "Ein Ö in " + stadt + " – wie schön…"
END IF
RETURN LEFT(name, 2)
