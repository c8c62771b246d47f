DESCRIPTION "Answer new tickets"
ON EVENT "new_ticket" DO
    TALK "A new ticket"
END ON
