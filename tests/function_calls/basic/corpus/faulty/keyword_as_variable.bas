DESCRIPTION "Gives words of the language a value"
TALK = 5
LET = 5
END = 5
next = 3
TALK next
