PARAM text AS string LIKE "Never odd or even" DESCRIPTION "Text to test"
DESCRIPTION "Tells whether a text reads the same backwards"

clean = REPLACE(LCASE(text), " ", "")
clean = REPLACE(clean, ",", "")
back = ""
FOR i = LEN(clean) TO 1 STEP -1
    back = back + MID(clean, i, 1)
NEXT i

IF clean = back AND LEN(clean) > 0 THEN
    TALK "'" + text + "' is a palindrome."
    RETURN TRUE
ELSE
    TALK "'" + text + "' is not: " + back
    RETURN FALSE
END IF
