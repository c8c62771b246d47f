PARAM notes AS text LIKE "We talked about the budget." DESCRIPTION "Notes of the meeting"
PARAM attendees AS string LIKE "ann@example.com, bob@example.com" DESCRIPTION "Who was there"
DESCRIPTION "Sums up a meeting and mails the summary"

summary = LLM "Sum up these notes in three points:\n" + notes
polite = REWRITE summary
SET CONTEXT "meeting" AS summary

FOR EACH address IN SPLIT(attendees, ",")
    SEND EMAIL TRIM(address), "Summary of the meeting", polite
NEXT address

TALK summary
RETURN summary
