DESCRIPTION "WITH is not ended"
WITH customer
    name = "Ann"
    city = "Rome"

SAVE "customers.csv", customer
TALK "saved"
