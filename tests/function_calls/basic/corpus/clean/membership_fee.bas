PARAM age AS integer LIKE 30 DESCRIPTION "Age of the member in years"
PARAM months AS integer LIKE 12 DESCRIPTION "For how many months" DEFAULT 12
PARAM family AS boolean LIKE false DESCRIPTION "Whether it is a family membership" DEFAULT FALSE
DESCRIPTION "Computes the fee of a club membership"

FUNCTION monthly_fee(years, is_family)
    IF is_family THEN
        RETURN 35
    END IF
    IF years < 14 THEN
        RETURN 5
    ELSEIF years < 18 OR years >= 65 THEN
        RETURN 9.5
    END IF
    RETURN 19
END FUNCTION

fee = monthly_fee(age, family) * months
IF months >= 12 THEN
    fee = fee * 0.9
END IF
fee = ROUND(fee, 2)
TALK "That makes " + FORMAT(fee, "0.00") + " for " + months + " months."
RETURN fee
