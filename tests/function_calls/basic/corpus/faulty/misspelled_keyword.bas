DESCRIPTION "Nearly a keyword"
x = 1
TLAK "hello"
IFF x = 1 THEN
    TALK "one"
END IF
