REM every morning at eight
SET SCHEDULE "0 8 * * *"

today = FORMAT(NOW(), "MM-dd")
people = FIND "birthdays.csv"

FOR EACH person IN people
    IF RIGHT(person.birthday, 5) = today THEN
        TALK "Happy birthday, " + person.name + "!"
        IF person.email <> "" THEN
            SEND MAIL person.email, "Happy birthday", "Dear " + person.name + ",\nall the best from all of us!"
        END IF
    END IF
NEXT person

RETURN UBOUND(people)
