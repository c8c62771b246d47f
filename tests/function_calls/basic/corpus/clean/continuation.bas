PARAM first AS string LIKE "Ada" _
    DESCRIPTION "First name"
PARAM last AS string _
    LIKE "Lovelace" _
    DESCRIPTION "Last name"
DESCRIPTION "Statements that go over several lines"

full = first + " " + _
       last
total = 1 +
        2 +
        3
TALK full + _
     "!"
IF total = 6 AND _
   LEN(full) > 3 OR _
   FALSE THEN
    TALK "six and " +
         "long"
END IF
SAVE "names.csv", first,
                  last,
                  total
rows = FIND "names.csv"
RETURN rows.last
