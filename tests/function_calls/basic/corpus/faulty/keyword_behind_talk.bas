DESCRIPTION "Says little"
TALK IF
x = IF
TALK x
