DESCRIPTION "A bracket is not closed"
a = (1 + 2) * 3
b = ((1 + 2) * 3
TALK a + b
