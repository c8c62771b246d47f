PARAM size AS string ENUM ["S", "M", "L"] LIKE "M" DESCRIPTION "Size of the shirt" DEFAULT "XXL"
DESCRIPTION "A default that cannot be chosen"
TALK size
