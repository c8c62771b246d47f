DESCRIPTION "ELSE stands alone"
x = 3
ELSE
TALK "three"
END IF
