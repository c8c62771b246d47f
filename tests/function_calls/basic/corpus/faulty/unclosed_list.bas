DESCRIPTION "A list is not closed"
x = 1
colours = ["red", "green",
    "blue"
TALK colours[0]
TALK x
