DESCRIPTION "LOOP stands alone"
n = 3
WHILE n > 0
    n = n - 1
LOOP
TALK n
