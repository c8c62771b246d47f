PARAM text AS string LIKE "Dear all" DESCRIPTION "What the letter says"
DESCRIPTION "Draft a letter"
CREATE_DRAFT "ann@club.example", text
file = GENERATE_PDF "letter.html", text, "letter.pdf"
