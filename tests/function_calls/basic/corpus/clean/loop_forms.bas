DESCRIPTION "Every form of a loop"
s = ""
FOR i = 1 TO 3
  s = s + i
NEXT
FOR i = 10 TO 1 STEP -3
  s = s + "," + i
NEXT i
FOR x = 0 TO 1 STEP 0.5
  s = s + ";" + x
END FOR
FOR i = 5 TO 1
  s = s + "never"
NEXT i
FOR EACH c IN ["p", "q"]
  s = s + c
NEXT c
n = 0
DO UNTIL n = 2
  n = n + 1
LOOP
DO
  n = n + 1
LOOP WHILE n < 5
WHILE n < 7
  n = n + 1
WEND
TALK s
RETURN n
