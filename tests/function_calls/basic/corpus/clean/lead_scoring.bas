PARAM company_size AS integer LIKE 120 DESCRIPTION "Number of employees"
PARAM budget AS number LIKE 15000 DESCRIPTION "Yearly budget in dollars"
PARAM role AS string LIKE "CTO" DESCRIPTION "Role of the contact"
PARAM opened_mails AS integer LIKE 4 DESCRIPTION "How many newsletters were opened"
DESCRIPTION "Scores a lead from 0 to 100 and names the grade"

score = 0

IF company_size > 500 THEN
    score = score + 30
ELSE IF company_size > 50 THEN
    score = score + 20
ELSE
    score = score + 5
END IF

IF budget >= 10000 AND budget < 50000 THEN
    score = score + 25
ELSEIF budget >= 50000 THEN
    score = score + 35
ENDIF

SELECT CASE UCASE(role)
    CASE "CEO", "CTO", "CFO"
        score = score + 20
    CASE "MANAGER"
        score = score + 10
    CASE ELSE
        score = score + 2
END SELECT

score = score + opened_mails * 2
IF score > 100 THEN score = 100

SELECT CASE TRUE
    CASE score >= 70
        grade = "hot"
    CASE score >= 40
        grade = "warm"
    CASE ELSE
        grade = "cold"
END SELECT

WITH result
    score = score
    grade = grade
    reviewed = FALSE
END WITH

TALK "Lead is ${grade} with ${score} points."
RETURN result
