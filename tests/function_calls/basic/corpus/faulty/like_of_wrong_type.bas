PARAM name AS string LIKE "Ann" DESCRIPTION "Name of the person"
PARAM age AS integer LIKE "many" DESCRIPTION "Age in years"
DESCRIPTION "An example that does not fit its type"
TALK name + age
