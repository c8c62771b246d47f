DESCRIPTION "The same function twice"
FUNCTION twice(x)
    RETURN x * 2
END FUNCTION

FUNCTION Twice(y)
    RETURN y + y
END FUNCTION
TALK twice(4)
