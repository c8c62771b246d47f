DESCRIPTION "A bracket too many"
a = (1 + 2)) * 3
TALK a
