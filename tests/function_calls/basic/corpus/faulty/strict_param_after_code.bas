PARAM first AS string LIKE "a" DESCRIPTION "First value"
DESCRIPTION "Declares a parameter too late"
x = first
PARAM second AS string LIKE "b" DESCRIPTION "Second value"
TALK x + second
