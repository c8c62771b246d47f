PARAM first AS string LIKE "a" DESCRIPTION "First value" OPTIONAL
PARAM when AS date LIKE "2024-01-31" DESCRIPTION "Which day"
DESCRIPTION "More than the strict profile allows"
TALK first + when
