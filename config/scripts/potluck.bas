' Who brings what to the party. Call it with a dish, or with "list" to see what is there.
' /potluck potato salad        /potluck list

PARAM dish AS string LIKE "potato salad" DESCRIPTION "What the member brings, or list to see what there is"
DESCRIPTION "Note what a member brings to the potluck, and show the list"

dish = LOWER(TRIM(dish))

IF dish <> "list" THEN
    others = FIND "potluck" WHERE dish = dish AND who <> username
    IF others THEN
        TALK "${others.who} brings ${dish} already. Bring it all the same?"
        HEAR sure AS BOOLEAN
        IF NOT sure THEN
            TALK "Then tell me something else with /potluck."
            RETURN "nothing was noted"
        END IF
    END IF
    SAVE "potluck" WITH who = username, dish = dish
END IF

entries = FIND "potluck" ORDER BY dish LIMIT 100
IF NOT entries THEN
    TALK "Nobody brings anything yet. Begin with /potluck and a dish."
    RETURN "the list is empty"
END IF

lines = ["On the table:"]
FOR EACH entry IN entries
    PUSH lines, "- ${entry.dish} (${entry.who})"
NEXT
TALK JOIN(lines, "\n")
RETURN entries
