PARAM person AS string LIKE "Ann" DESCRIPTION "Whom to look for"
DESCRIPTION "Calculate with dates and the last items of a list"
TALK DAYS_BETWEEN("2026-01-01", "2026-01-31")
TALK HOURS_BETWEEN("2026-01-01 08:00", "2026-01-01 12:00")
TALK ADD_DAYS("2026-01-31", 1)
FOR EACH number IN [1, 2, 3] LAST 2
    IF "item " + number STARTS WITH "item" THEN TALK number
NEXT
SAVE "people", {"name": "Ann", "age": 31}
wanted = "Ann"
found = QUERY "SELECT name, age FROM people WHERE name = '${wanted}'"
TALK found[0].name + " is " + found[0].age
none = QUERY "SELECT * FROM people WHERE name = '${person}'"
TALK UBOUND(none)
