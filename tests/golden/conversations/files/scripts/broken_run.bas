DESCRIPTION "Divide by what is not there"

TALK "Before."
x = 1 / 0
TALK "After."
