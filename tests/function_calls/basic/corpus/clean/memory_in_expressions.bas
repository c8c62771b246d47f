DESCRIPTION "Counts with what is remembered"
SET BOT MEMORY "visits", 1
total = GET BOT MEMORY "visits" + 1
TALK total
IF GET BOT MEMORY "visits" = 1 THEN TALK "first"
IF GET BOT MEMORY "visits" > 0 AND GET BOT MEMORY "none" IS NULL THEN TALK "both"
name = "ann"
SET BOT MEMORY "visits_" + name, 7
TALK GET BOT MEMORY "visits_" + name
key = "visits"
TALK GET BOT MEMORY key
TALK GET BOT MEMORY ("vis" + "its") * 10
SET CHAT MEMORY "best" = #{ points: 3 }
TALK (GET CHAT MEMORY "best").points
SET USER MEMORY "a", 2
TALK GET USER MEMORY "a" * 3
REMEMBER "b", 4
x = RECALL "b" - 1
TALK "b is " + RECALL "b" + " and " + x
