REM three tools in one file
PARAM celsius AS number LIKE 21.5 DESCRIPTION "Degrees Celsius"
DESCRIPTION "Converts Celsius to Fahrenheit"
RETURN ROUND(celsius * 9 / 5 + 32, 1)

PARAM miles AS number LIKE 26.2 DESCRIPTION "Distance in miles"
DESCRIPTION "Converts miles to kilometres"
RETURN ROUND(miles * 1.609344, 3)

PARAM pounds AS number LIKE 165 DESCRIPTION "Weight in pounds"
DESCRIPTION "Converts pounds to kilograms"
kilograms = pounds * 0.45359237
RETURN ROUND(kilograms, 2)
