PARAM colour AS string LIKE "red" DESCRIPTION "Which colour"
DESCRIPTION "SELECT is not ended"
SELECT CASE colour
    CASE "red"
        TALK "stop"
    CASE "green"
        TALK "go"
RETURN colour
