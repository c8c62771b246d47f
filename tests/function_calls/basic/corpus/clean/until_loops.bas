DESCRIPTION "Loops of every kind"
n = 0
DO UNTIL n >= 3
  n = n + 1
LOOP
DO
  n = n - 1
LOOP WHILE n > 0
DO
  n = n + 2
LOOP UNTIL n > 5
WHILE n > 0
  n = n - 1
  IF n = 2 THEN BREAK
END WHILE
FOR x = 0.5 TO 2 STEP 0.5
  n = n + x
NEXT x
FOR i = 1 TO 2: FOR j = 1 TO 2: n = n + i * j: NEXT j: NEXT i
FOR EACH ch IN SPLIT("a,b", ",")
  n = n & ch
END FOR
TALK n
