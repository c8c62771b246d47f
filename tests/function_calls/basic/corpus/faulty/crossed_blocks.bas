DESCRIPTION "Blocks that cross"
FOR i = 1 TO 3
    IF i = 2 THEN
        TALK i
NEXT i
    END IF
TALK "done"
