PARAM formula AS string LIKE "2+2" DESCRIPTION "Two numbers and an operator"
DESCRIPTION "Works out a small formula"

result = NULL
IF INSTR(formula, "+") > 0 THEN
    parts = SPLIT(formula, "+")
    IF UBOUND(parts) = 2 THEN
        result = VAL(parts[0]) + VAL(parts[1])
    END IF
ELSE IF INSTR(formula, "*") > 0 THEN
    parts = SPLIT(formula, "*")
    IF UBOUND(parts) = 2 THEN
        result = VAL(TRIM(parts[0])) * VAL(TRIM(parts[1]))
    END IF
END IF

IF result IS NULL THEN
    TALK "I cannot work out " + formula
ELSE
    TALK formula + " = " + result
END IF
RETURN result
