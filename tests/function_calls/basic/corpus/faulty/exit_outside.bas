DESCRIPTION "EXIT FOR outside of a loop"
x = 1
IF x = 1 THEN
    EXIT FOR
END IF
