PARAM n AS integer LIKE 1 DESCRIPTION "A number"
DESCRIPTION "Line ends of Windows, a mistake on line 5"

TALK n
TALK n +* 2
TALK "end"
