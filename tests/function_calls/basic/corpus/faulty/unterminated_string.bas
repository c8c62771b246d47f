DESCRIPTION "A quote is missing"
name = "Ann"
TALK "Hello " + name + ", how are you?
TALK "bye"
