PARAM topic AS string LIKE weather DESCRIPTION What the person asks about
PARAM count AS integer LIKE 3 DESCRIPTION How many answers, at most
DESCRIPTION Answers a question about a topic of the day.

FOR i = 1 TO count
    TALK "Answer " + i + " about " + topic
NEXT i
