DESCRIPTION "FOR without an end"
FOR i = 1 10
    TALK i
NEXT i
