DESCRIPTION "A parameter is only begun"

PARAM
TALK "hello"
