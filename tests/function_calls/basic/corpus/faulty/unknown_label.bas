10 LET n = 1
20 TALK n
30 n = n + 1
40 IF n < 5 THEN GOTO 25
50 GOTO finished
