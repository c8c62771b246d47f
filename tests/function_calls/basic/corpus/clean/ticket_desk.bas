PARAM subject AS string LIKE "Printer is on fire" DESCRIPTION "What is wrong"
PARAM urgent AS boolean LIKE true DESCRIPTION "Whether it cannot wait"
DESCRIPTION "Opens a ticket at the help desk"

ticket = {}
ticket.subject = subject
ticket.status = "open"
ticket.priority = IIF(urgent, 1, 3)
ticket.history = []
ticket.history = APPEND(ticket.history, "created")

words = SPLIT(LCASE(subject), " ")
IF CONTAINS(words, "fire") THEN
    ticket.priority = 0
    ticket.history = APPEND(ticket.history, "escalated")
END IF

SAVE "tickets.csv", "T-1", ticket
TALK "Ticket with priority " + ticket.priority + ": " + JOIN(ticket.history, ", ")
WITH answer
    .status = ticket.status
    .steps = COUNT(ticket.history)
END WITH
RETURN answer
