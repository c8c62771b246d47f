DESCRIPTION "WEND stands alone"
n = 3
WEND
TALK n
