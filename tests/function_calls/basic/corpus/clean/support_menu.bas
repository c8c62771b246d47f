DESCRIPTION "A menu for the support line"

TALK "What is it about?"
HEAR choice AS "Billing", "Technical", "Goodbye"

SWITCH LCASE(choice)
CASE "billing"
    TALK "Which invoice?"
    HEAR invoice
    TALK "Invoice " + invoice + " is noted."
CASE "technical"
    TALK "Did you restart it?"
    HEAR restarted AS BOOLEAN
    IF restarted THEN
        TALK "Then we call you."
    ELSE
        TALK "Please do."
    END IF
CASE "goodbye"
    TALK "Bye."
END SWITCH
RETURN choice
