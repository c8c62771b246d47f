PARAM topic AS string LIKE "Spring sale" DESCRIPTION "What this issue is about"
PARAM test_only AS boolean LIKE true DESCRIPTION "Send it to the editor alone"
DESCRIPTION "Sends the newsletter to all subscribers"

subscribers = FIND "subscribers.csv", "active=yes"
sent = 0

IF test_only THEN
    BEGIN MAIL "editor@example.com"
    Subject: [test] ${topic}

    Hello editor,

    this is how "${topic}" will look like.
    END MAIL
    TALK "Test mail sent."
    RETURN 1
END IF

FOR EACH subscriber IN subscribers
    BEGIN MAIL subscriber.email
    Subject: News: ${topic}

    Dear ${subscriber.name},

    our news this month: ${topic}!
    IF you do not want this mail, answer with STOP.

    Yours, the team
    END MAIL
    sent = sent + 1
    WAIT 1
NEXT subscriber

SEND MAIL "editor@example.com", "Newsletter done", "Sent to ${sent} people."
TALK "Sent to " + sent + " people."
RETURN sent
