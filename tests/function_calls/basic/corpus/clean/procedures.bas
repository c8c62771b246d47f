DESCRIPTION "Shows what SUB and FUNCTION do"

SUB greet(who, times)
    FOR n = 1 TO times
        TALK n + ": hello " + who
    NEXT n
END SUB

FUNCTION factorial(n)
    IF n <= 1 THEN
        RETURN 1
    END IF
    RETURN n * factorial(n - 1)
END FUNCTION

FUNCTION average(numbers)
    total = 0
    FOR EACH x IN numbers
        total = total + x
    NEXT x
    RETURN total / COUNT(numbers)
END FUNCTION

CALL greet("Bob", 2)
greet "Eve", 1
TALK "6! = " + factorial(6)
TALK "mean " + average([1, 2, 3, 4])
RETURN factorial(10)
