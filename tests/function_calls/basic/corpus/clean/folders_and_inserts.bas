DESCRIPTION "Write a list of the members into a folder and count what is there"

INSERT INTO "visitors" WITH name = "Ann", age = 31
INSERT INTO "visitors" WITH
    name = "Bo",
    age = 17
rows = FIND "visitors" ORDER BY name
out = "name;age"
FOR EACH r IN rows
    out = out + "\n" + r.name + ";" + r.age
NEXT
WRITE "lists/visitors.csv", out
FOR EACH file IN LIST "lists/"
    TALK file
NEXT
found = LIST("lists/")
TALK UBOUND(found) + " file, " + LEN(READ found[0]) + " characters, the last is " + LAST(rows, "name")
TALK FIRST([3, 2, 1], 2)
SET CONTEXT "visitors", out
