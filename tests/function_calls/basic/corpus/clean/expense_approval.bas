PARAM amount AS number LIKE 120.5 DESCRIPTION "Amount in euro"
PARAM category AS string LIKE "travel" DESCRIPTION "travel, meals or other"
PARAM employee AS string LIKE "Kim" DESCRIPTION "Who spent the money"
PARAM note AS string LIKE "taxi to the airport" DESCRIPTION "What it was for" OPTIONAL

DESCRIPTION "Decides about an expense claim or passes it to the manager"

limit = 100
SELECT CASE LCASE(category)
CASE "travel"
  limit = 500
CASE "meals"
  limit = 60
END SELECT

IF NOT note THEN
  note = "no note"
END IF

IF amount <= 0 THEN
  TALK "The amount has to be positive."
  RETURN "invalid"
ELSE
  IF amount <= limit THEN
    decision = "approved"
  ELSE
    IF amount > limit * 10 THEN
      decision = "rejected"
    ELSE
      decision = "manager"
    END IF
  END IF
END IF

SAVE "expenses.csv", employee, category, amount, decision, note
TALK employee + ": " + FORMAT(amount, "0.00") + " EUR (" + note + ") -> " + decision
RETURN decision
