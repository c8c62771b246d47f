DESCRIPTION "A quiz about capitals with three questions"

questions = [
  {q: "Capital of France?", a: "paris"},
  {q: "Capital of Japan?", a: "tokyo"},
  {q: "Capital of Peru?", a: "lima"}
]
points = 0
number = 0

FOR EACH item IN questions
  number = number + 1
  TALK "Question " + number + ": " + item.q
  HEAR guess
  IF LCASE(TRIM(guess)) = item.a THEN
    points = points + 1
    TALK "Right!"
  ELSE
    TALK "No, it is " + UCASE(LEFT(item.a, 1)) + MID(item.a, 2) + "."
  END IF
NEXT

TALK "You have " + points + " of " + COUNT(questions) + " points."
IF points = COUNT(questions) THEN TALK "Perfect!" ELSE TALK "Try again one day."
RETURN points
