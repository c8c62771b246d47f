PARAM last AS integer LIKE 15 DESCRIPTION "The last number"
DESCRIPTION "The game of fizz and buzz"
out = ""
FOR i = 1 TO last
  w = ""
  IF i MOD 3 = 0 THEN w = w + "fizz"
  IF i MOD 5 = 0 THEN w = w + "buzz"
  IF w = "" THEN w = STR(i)
  IF i = 1 THEN out = w ELSE out = out + " " + w
NEXT
TALK out
RETURN out
