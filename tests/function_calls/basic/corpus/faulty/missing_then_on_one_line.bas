DESCRIPTION "Greet by the hour"
h = HOUR(NOW())
IF h < 12 TALK "Good morning" ELSE TALK "Hello"
