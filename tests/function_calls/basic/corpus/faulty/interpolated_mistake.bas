DESCRIPTION "A mistake within a text"
n = 4
TALK "Twice that is ${n * }"
BEGIN TALK
Dear friend,
that is ${n + + * 2} more.
END TALK
