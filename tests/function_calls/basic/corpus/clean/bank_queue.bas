DESCRIPTION "Serves people in the order they came"
queue = ["Ann", "Bob", "Cem"]
served = 0
WHILE COUNT(queue) > 0
    person = queue[0]
    queue = SLICE(queue, 1)
    served = served + 1
    IF person = "Bob" THEN
        TALK "Bob left"
        CONTINUE
    END IF
    TALK "Next: " + person
END WHILE
DO
    served = served - 1
LOOP UNTIL served <= 0
RETURN served
