PARAM lead_name AS string LIKE "Acme Inc." DESCRIPTION "Name of the company"
PARAM phone AS phone LIKE "+1 555 0100" DESCRIPTION "Phone number"
PARAM value AS money LIKE 2500 DESCRIPTION "Expected value"
DESCRIPTION "Puts a lead into the CRM"

SET HEADER "Authorization", "Bearer " + GET BOT MEMORY("crm_token")
SET HEADER "Accept" = "application/json"

payload = {
    "lead": {
        "name": lead_name,
        "phone": phone,
        "value": value,
        "tags": ["bot", "new"]
    }
}

answer = POST "https://crm.example.com/api/leads", payload
CLEAR HEADERS

IF answer.id THEN
    TALK "Lead " + answer.id + " created."
    CREATE TASK "Call " + lead_name, "sales@example.com", DATEADD(NOW(), 2, "day")
ELSE
    TALK "The CRM did not take it."
END IF
RETURN answer.id
