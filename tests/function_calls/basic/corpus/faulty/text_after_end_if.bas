DESCRIPTION "Text where none belongs"
x = 1
IF x = 1 THEN
    TALK "one"
END IF and then some
TALK "done"
