PARAM city AS string LIKE "Oslo" DESCRIPTION "The city"
DESCRIPTION Tell about a city
DESCRIPTION "Tell more about a city"
TALK city
