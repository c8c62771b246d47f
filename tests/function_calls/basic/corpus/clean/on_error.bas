DESCRIPTION "What happens when something goes wrong"

ON ERROR RESUME NEXT
x = 1 / 0
IF ERROR THEN
    TALK "caught"
END IF
ON ERROR GOTO 0

FUNCTION half(n)
    IF n MOD 2 = 1 THEN
        THROW "odd number"
    END IF
    RETURN n / 2
END FUNCTION

ON ERROR RESUME NEXT
y = half(7)
IF ERROR THEN
    TALK "message: " + ERROR MESSAGE
END IF
ON ERROR GOTO 0

TALK "half of 8 is " + half(8)
RETURN "done"
