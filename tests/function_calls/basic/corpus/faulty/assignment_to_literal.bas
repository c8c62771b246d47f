DESCRIPTION "A literal cannot be changed"
x = 4
5 = x
"name" = "Ann"
