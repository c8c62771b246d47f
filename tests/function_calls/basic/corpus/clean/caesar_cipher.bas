PARAM text AS string LIKE "Hello" DESCRIPTION "Text to encode"
PARAM shift AS integer LIKE 3 DESCRIPTION "By how many letters"
DESCRIPTION "Encodes a text with the cipher of Caesar"

FUNCTION turned(letter, by)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    place = INSTR(alphabet, UCASE(letter))
    IF place = 0 THEN
        RETURN letter
    END IF
    RETURN MID(alphabet, (place - 1 + by) MOD 26 + 1, 1)
END FUNCTION

result = ""
FOR i = 1 TO LEN(text)
    result = result + turned(MID(text, i, 1), shift)
NEXT
TALK result
RETURN result
