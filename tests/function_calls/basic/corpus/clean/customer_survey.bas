DESCRIPTION "Asks three questions about the last visit and keeps the answers"

TALK "Three short questions, promised."
TALK "How satisfied were you?"
HEAR satisfaction AS "Very", "So so", "Not at all"
TALK "How many stars from 1 to 5?"
HEAR stars AS INTEGER
TALK "Anything else?"
HEAR remark

IF stars < 1 OR stars > 5 THEN
    stars = 3
END IF

SAVE "survey.csv", satisfaction, stars, remark
rows = FIND "survey.csv"

BEGIN TALK
Thank you!
You were ${satisfaction} satisfied: ${stars} of 5.
END TALK

RETURN UBOUND(rows)
