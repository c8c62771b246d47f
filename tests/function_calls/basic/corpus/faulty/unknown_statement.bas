DESCRIPTION "Uses a statement that does not exist"
TALK "before"
FROBNICATE "customers.csv", 3
TALK "after"
