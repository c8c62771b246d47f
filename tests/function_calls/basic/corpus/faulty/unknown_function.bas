DESCRIPTION "A function that does not exist"
text = "hello"
TALK UPERCASE(text)
