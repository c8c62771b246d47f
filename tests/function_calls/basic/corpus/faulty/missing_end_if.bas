PARAM age AS integer LIKE 30 DESCRIPTION "Age in years"
DESCRIPTION "Tells whether somebody is of age"

IF age >= 18 THEN
    TALK "of age"
ELSE
    TALK "too young"

RETURN age
