DESCRIPTION "Greet by the hour"
h = HOUR(NOW())
IF h < 12 THEN
    TALK "Good morning"
ELSEIF h < 18
    TALK "Good afternoon"
ELSE
    TALK "Good evening"
END IF
