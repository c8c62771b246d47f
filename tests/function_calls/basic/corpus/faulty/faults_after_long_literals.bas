DESCRIPTION "Lines are counted behind statements of several lines"
config = {
    name: "x",
    list: [1,
        2,
        3]
}
text = "one" + _
    "two" + _
    "three"
BEGIN TALK
Several
lines
END TALK
IF text = "x" THEN
    TALK "x"
ENDIF IF
TALK LEFT("abc" 2)
