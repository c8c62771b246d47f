PARAM n AS integer LIKE 5 DESCRIPTION "How many stars"
DESCRIPTION "Draws a triangle"
r=""
FOR i=1 TO n
IF i MOD 2=0 THEN
r=r+"-"
ELSE
r=r+"*"
ENDIF
t=""
FOR j=1 TO i
t=t+"*"
NEXT j
TALK t
NEXT i
RETURN r
