DESCRIPTION "Counts how often it ran"

visits = GET BOT MEMORY("visits")
IF visits IS NULL OR visits = "" THEN
    visits = 0
END IF
visits = visits + 1
SET BOT MEMORY "visits", visits

again = GET BOT MEMORY "visits"
SET USER MEMORY "last_seen", "today"
seen = GET USER MEMORY "last_seen"
TALK "Visit number " + again + ", last seen " + seen
RETURN again
