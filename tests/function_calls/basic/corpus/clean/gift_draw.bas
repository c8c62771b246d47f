DESCRIPTION "Draw who gives a present to whom"

names = ["Ann", "Bo", "Cem", "Dora"]
n = UBOUND(names)
' every name changes its place with one before it
FOR i = n - 1 TO 1 STEP -1
    j = INT(RANDOM(0, i))
    swapped = names[i]
    names[i] = names[j]
    names[j] = swapped
NEXT
FOR i = 0 TO n - 1
    giver = names[i]
    IF i = n - 1 THEN receiver = names[0] ELSE receiver = names[i + 1]
    TALK giver + " → " + receiver
NEXT
RETURN n
