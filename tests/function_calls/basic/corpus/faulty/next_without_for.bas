DESCRIPTION "Counts"
total = 0
total = total + 1
NEXT i
TALK total
