PARAM limit AS integer LIKE 30 DESCRIPTION "Up to which number"
DESCRIPTION "Lists the prime numbers up to a limit"

found = []
FOR n = 2 TO limit
    is_prime = TRUE
    d = 2
    WHILE d * d <= n
        IF n MOD d = 0 THEN
            is_prime = FALSE
            EXIT WHILE
        END IF
        d = d + 1
    WEND
    IF NOT is_prime THEN
        CONTINUE
    END IF
    found = APPEND(found, n)
NEXT n

TALK JOIN(found, " ")
RETURN COUNT(found)
