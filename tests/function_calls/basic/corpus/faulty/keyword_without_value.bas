DESCRIPTION "Reads a page"
x = GET
y = FIND
TALK x + y
