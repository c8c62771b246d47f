PARAM city AS string LIKE "Oslo" DESCRIPTION "The city"
DESCRIPTION "Show what is probably meant otherwise"
user = "Ann"
IF city = "Oslo" OR "Bergen" THEN TALK "In {city}"
SET ANSWER MODE "sql"
TALK user
