PARAM colour AS string LIKE "red" DESCRIPTION "Favourite colour"
TALK "I like " + colour
