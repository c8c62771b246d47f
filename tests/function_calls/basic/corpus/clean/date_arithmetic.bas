DESCRIPTION "Reckons with dates"

start = DATEVALUE("2024-02-28")
TALK FORMAT(DATEADD(start, 1, "day"), "yyyy-MM-dd")
TALK FORMAT(DATEADD(start, 2, "day"), "yyyy-MM-dd")
TALK FORMAT(DATEADD(start, 1, "month"), "dd/MM/yyyy")
TALK YEAR(start) + "/" + MONTH(start) + "/" + DAY(start)
TALK DATEDIFF("2024-01-01", "2024-03-01", "day")
deadline = DATEADD(NOW(), 3, "day")
IF deadline > NOW() THEN
    TALK "in time"
END IF
IF DATEDIFF(TODAY(), DATEADD(TODAY(), 7, "day"), "day") = 7 THEN
    TALK "a week"
END IF
RETURN FORMAT(start, "YYYY") = "2024"
