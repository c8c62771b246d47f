DESCRIPTION "Book a table"

TALK "How many are you?"
HEAR guests AS INTEGER
TALK "Inside or outside?"
HEAR place AS "inside", "outside"
TALK "On which day?"
HEAR day AS DATE
TALK "${guests} guests ${place} on " + FORMAT(day, "dd.MM.yyyy") + "."
RETURN guests
