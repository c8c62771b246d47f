DESCRIPTION "Tell who cleans the boathouse this week"

SET SCHEDULE "every monday at 9:30"
names = ["Ann", "Bo", "Cid"]
TALK names[WEEKNUM(TODAY()) MOD UBOUND(names)] + " cleans this week."
