PARAM count AS integer LIKE 5 DESCRIPTION "How many laps somebody swam"
DESCRIPTION "Note the laps that a member swam"

SAVE "laps" WITH swimmer = username, count = count, day = TODAY()

mine = FIND "laps" WHERE swimmer = username ORDER BY day DESC
TALK "${username}: ${SUM(mine, "count")} laps in ${UBOUND(mine)} visits."

best = NVL(GET CHAT MEMORY "best", 0)
IF count > best THEN
    SET CHAT MEMORY "best", count
    TALK "A record!"
END IF
