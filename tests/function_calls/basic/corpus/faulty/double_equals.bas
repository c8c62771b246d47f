DESCRIPTION "Written by somebody who knows another language"
x = 3
IF x = 3 && x < 9 THEN
    TALK "three"
END IF
