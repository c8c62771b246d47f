PARAM n AS integer LIKE 3 DESCRIPTION "A number"
DESCRIPTION "THEN is missing"
IF n > 3
    TALK "more than three"
END IF
RETURN n
