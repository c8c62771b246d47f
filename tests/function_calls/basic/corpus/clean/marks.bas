PARAM grade AS integer LIKE 87 DESCRIPTION "Points out of 100"
DESCRIPTION "Turn points into a mark"
SELECT CASE TRUE
    CASE grade >= 90
        mark = "A"
    CASE grade >= 80
        mark = "B"
    CASE ELSE: mark = "C"
END SELECT
SELECT CASE grade
    CASE 0 TO 49
        TALK "failed"
    CASE IS >= 50
        TALK "passed with " + mark
END SELECT
