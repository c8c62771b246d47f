PARAM bill AS number LIKE 84.6 DESCRIPTION "Sum on the bill"
PARAM people AS integer LIKE 4 DESCRIPTION "How many share it"
PARAM percent AS number LIKE 10 DESCRIPTION "Tip in percent" DEFAULT 10
DESCRIPTION "Splits a bill with tip"
IF people < 1 THEN TALK "Nobody there?" : RETURN 0
tip = bill * percent / 100 : each = ROUND((bill + tip) / people, 2)
TALK "Everybody pays " + FORMAT(each, "0.00") : TALK "The tip is " + FORMAT(tip, "0.00")
RETURN each
