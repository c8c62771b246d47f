PARAM drink AS "coffee", "tea" DESCRIPTION "What to drink"
PARAM cups AS integer LIKE 2 DEFAULT 1 DESCRIPTION "How many cups"
DESCRIPTION "Order a drink"

TALK "Ordered: ${cups} ${drink}"
