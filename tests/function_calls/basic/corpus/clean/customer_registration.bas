REM ---------------------------------------------------------
REM  Registers a customer and answers with the customer number
REM ---------------------------------------------------------
PARAM name AS string LIKE "Ana Torres" DESCRIPTION "Full name of the customer"
PARAM email AS email LIKE "ana.torres@example.com" DESCRIPTION "E-mail address for receipts"
PARAM age AS integer LIKE 34 DESCRIPTION "Age in years"

DESCRIPTION "Registers a new customer in the customer list"

IF age < 18 THEN
    TALK "Sorry " + name + ", customers have to be 18 or older."
    RETURN "rejected"
END IF

customer_id = "C-" + FORMAT(NOW(), "YYYYMMDD") + "-" + RANDOM(1000, 9999)

WITH customer
    id = customer_id
    name = name
    email = LCASE(email)
    age = age
    status = "active"
END WITH

SAVE "customers.csv", customer

saved = FIND "customers.csv", "email=" + LCASE(email)
TALK "Welcome, " + saved.name + "!"
TALK "Your number is ${customer_id}."

RETURN saved.status
