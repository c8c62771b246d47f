PARAM event AS string LIKE "started" DESCRIPTION "What happened"
DESCRIPTION "Keeps what happened"
SAVE "events.csv", event
