' Whose birthday comes, from the list birthdays.csv beside this file (columns name and born).
' /birthdays 30
' Once an admin has called it, it also looks every morning by itself and speaks up on birthdays alone.

PARAM days AS number LIKE 30 DESCRIPTION "How many days to look ahead; 0 is today alone"
DESCRIPTION "Tell whose birthdays come in the next days"

SET SCHEDULE "every day at 8:00", "birthdays", #{ days: 0 }

found = 0
FOR EACH person IN FIND "birthdays.csv" LIMIT 500
    age = YEAR(TODAY()) - YEAR(person.born)
    birthday = DATEADD(person.born, age, "year")
    IF birthday < TODAY() THEN
        age = age + 1
        birthday = DATEADD(person.born, age, "year")
    END IF
    IF DATEDIFF(TODAY(), birthday) <= days THEN
        found = found + 1
        IF birthday = TODAY() THEN
            TALK "Happy birthday, ${person.name}! ${age} today."
        ELSE
            TALK FORMAT(birthday, "yyyy-MM-dd") + ": ${person.name} (${age})"
        END IF
    END IF
NEXT

IF found = 0 AND days > 0 THEN
    TALK "No birthdays in the next ${days} days."
END IF
RETURN found
