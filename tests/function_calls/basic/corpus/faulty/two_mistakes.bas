DESCRIPTION "More than one mistake, each is reported"
x = = 3
TALK "in between"
y = 4 +* 2
TALK "and"
GOTO nowhere
