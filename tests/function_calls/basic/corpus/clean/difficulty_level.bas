PARAM level AS "easy", "normal", "hard" LIKE "normal" DESCRIPTION "How difficult the game is"
PARAM lives AS integer LIKE 3 DESCRIPTION "Number of lives"
DESCRIPTION "Starts a game at a level"

SWITCH level
    CASE "easy"
        enemies = 5
    CASE "normal"
        enemies = 10
    DEFAULT
        enemies = 20
END SWITCH

TALK "Level " + level + ": " + enemies + " enemies, " + lives + " lives"
RETURN enemies * lives
