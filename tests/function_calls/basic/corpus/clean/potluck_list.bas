DESCRIPTION "Collects who brings what to the potluck"

dishes = []
people = []
DO WHILE TRUE
    HEAR who
    IF LCASE(who) = "done" THEN
        EXIT DO
    END IF
    HEAR dish
    PUSH people, who
    PUSH dishes, dish
LOOP

IF UBOUND(dishes) = 0 THEN
    TALK "Nobody brings anything. Sad."
    RETURN 0
END IF

FOR i = 0 TO UBOUND(dishes) - 1
    TALK (i + 1) + ". " + people[i] + ": " + dishes[i]
NEXT i
TALK "All in all: " + JOIN(dishes, ", ")
RETURN UBOUND(dishes)
