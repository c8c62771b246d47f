DESCRIPTION "Sorts numbers the slow way"
numbers = [42, 7, 19, 3, 23, 8]
n = UBOUND(numbers)
swapped = TRUE
DO WHILE swapped
swapped = FALSE
FOR i = 0 TO n - 2
IF numbers[i] > numbers[i + 1] THEN
temp = numbers[i]
numbers[i] = numbers[i + 1]
numbers[i + 1] = temp
swapped = TRUE
END IF
NEXT i
LOOP
TALK JOIN(numbers, ",")
RETURN numbers
