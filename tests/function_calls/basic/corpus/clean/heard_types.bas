DESCRIPTION "Asks for values of several types"

TALK "Your mail address?"
HEAR mail AS EMAIL
TALK "How many guests?"
HEAR guests AS INTEGER
TALK "Which day?"
HEAR day AS DATE
TALK "Shall I go on? (yes/no)"
HEAR go AS BOOLEAN

IF go THEN
    TALK mail + " comes with " + guests + " guests, " + (guests + 1) + " people"
    RETURN FORMAT(day, "yyyy-MM-dd")
END IF
RETURN "stopped"
