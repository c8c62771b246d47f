' Who paid what, and who owes whom how much. Whoever takes part says it once, with 0 if they paid nothing.
' /split_costs 60 groceries        /split_costs 0 nothing

PARAM amount AS number LIKE 24.5 DESCRIPTION "How much the member has paid, 0 for nothing"
PARAM purpose AS string LIKE "groceries" DESCRIPTION "What it was paid for"
DESCRIPTION "Note what a member paid for everybody, and tell how the costs are split"

IF amount < 0 THEN
    TALK "An amount cannot be less than 0."
    RETURN "nothing was noted"
END IF

SAVE "costs" WITH payer = username, amount = amount, purpose = purpose

costs = FIND "costs" LIMIT 1000
shares = GROUP BY costs, "payer", #{ paid: "SUM(amount)" }
total = SUM(costs, "amount")
share = ROUND(total / COUNT(shares), 2)

lines = []
FOR EACH person IN SORT(shares, "key")
    rest = ROUND(person.paid - share, 2)
    IF rest > 0 THEN
        PUSH lines, "${person.key} gets back " + FORMAT(rest, "0.00")
    ELSE IF rest < 0 THEN
        PUSH lines, "${person.key} owes " + FORMAT(-rest, "0.00")
    ELSE
        PUSH lines, "${person.key} is even"
    END IF
NEXT

TALK "Together ${FORMAT(total, "0.00")}, that is ${FORMAT(share, "0.00")} for each of ${COUNT(shares)}.\n" + JOIN(lines, "\n")
RETURN lines
