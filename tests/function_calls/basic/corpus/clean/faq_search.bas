PARAM question AS string LIKE "How do I reset my password?" DESCRIPTION "What the person wants to know"
DESCRIPTION "Answers a frequently asked question from the list"

faq = [
    { "words": "password,login,sign in", "answer": "Use the 'Forgot password' link." },
    { "words": "invoice,bill,receipt", "answer": "Invoices are under Account > Billing." },
    { "words": "cancel,terminate", "answer": "You can cancel at any time in the settings." }
]

asked = LCASE(question)
answer = NULL

FOR EACH entry IN faq
    FOR EACH word IN SPLIT(entry.words, ",")
        IF INSTR(asked, word) > 0 THEN
            answer = entry.answer
            EXIT FOR
        END IF
    NEXT word
    IF answer IS NOT NULL THEN
        EXIT FOR
    END IF
NEXT entry

IF answer IS NULL THEN
    answer = "I do not know that one yet."
END IF

TALK answer
RETURN answer
