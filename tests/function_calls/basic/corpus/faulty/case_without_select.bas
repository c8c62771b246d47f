DESCRIPTION "CASE stands alone"
x = 1
CASE 1
    TALK "one"
