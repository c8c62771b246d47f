PARAM number AS integer LIKE 1994 DESCRIPTION "Number from 1 to 3999"
DESCRIPTION "Writes a number with Roman digits"
ASSERT number > 0, "only positive numbers"
values = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1]
signs = SPLIT("M,CM,D,CD,C,XC,L,XL,X,IX,V,IV,I", ",")
rest = number
roman = ""
FOR i = 0 TO UBOUND(values) - 1
    WHILE rest >= values[i]
        roman = roman + signs[i]
        rest = rest - values[i]
    WEND
NEXT i
TALK number + " = " + roman
RETURN roman
