DESCRIPTION "Two operators in a row"
a = 5
b = a * / 3
TALK b
