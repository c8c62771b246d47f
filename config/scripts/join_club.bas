' A new member leaves an address, is kept in the table members, and gets a letter if mail is set up (settings: mail).
' /join_club Ann Lee

PARAM full_name AS string LIKE "Ann Lee" DESCRIPTION "First and last name of the new member"
DESCRIPTION "Register a new member of the club and confirm it by mail"

TALK "Welcome, ${full_name}! Where can we write to you?"
HEAR email AS EMAIL

IF FIND "members" WHERE email = email THEN
    TALK "${email} is registered already."
    RETURN "registered before"
END IF

number = COUNT(FIND "members" LIMIT 1000) + 1
joined = TODAY()
SAVE "members", number, full_name, email, joined

ON ERROR RESUME NEXT
BEGIN MAIL email
Subject: Welcome to the club

Dear ${full_name},
you are member number ${number} since ${joined}. See you soon!
END MAIL
IF ERROR THEN
    TALK "You are member number ${number}. The letter could not be sent: ${ERROR MESSAGE}"
ELSE
    TALK "You are member number ${number}. A letter is on its way to ${email}."
END IF
RETURN number
