PARAM message AS string LIKE "Hello {name}, we have news" DESCRIPTION "Text to send, {name} becomes the name"
PARAM filter AS string LIKE "city=Rome" DESCRIPTION "Which contacts" OPTIONAL
DESCRIPTION "Sends a message to every contact on the list"

IF filter THEN
	list = FIND "contacts.csv", filter
ELSE
	list = FIND "contacts.csv"
END IF

IF UBOUND(list) = 0 THEN
	TALK "Nobody to write to."
	RETURN 0
END IF

index = 1
sent = 0
DO WHILE index < UBOUND(list)
	row = list[index]
	TALK TO "whatsapp:" + row.phone, REPLACE(message, "{name}", row.name)
	WAIT 1
	sent = sent + 1
	index = index + 1
LOOP

TALK "Sent to ${sent} contacts."
RETURN sent
