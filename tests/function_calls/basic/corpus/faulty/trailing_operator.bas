DESCRIPTION "The last line is not finished"
x = 1
y = x +
