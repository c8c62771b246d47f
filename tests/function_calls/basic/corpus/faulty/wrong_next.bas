DESCRIPTION "NEXT names another variable"
FOR i = 1 TO 3
    FOR j = 1 TO 3
        TALK i * j
    NEXT i
NEXT j
