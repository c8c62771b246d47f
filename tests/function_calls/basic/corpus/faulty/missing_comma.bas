DESCRIPTION "A comma is missing"
text = "hello"
TALK LEFT(text 2)
