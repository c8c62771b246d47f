DESCRIPTION "Too few and too many arguments"
text = "hello"
TALK LEFT(text)
TALK UCASE(text, 3)
TALK MID(text, 2)
