' what happens when a conversation begins
CLEAR SUGGESTIONS
CLEAR TOOLS

ADD TOOL "customer-registration"
ADD TOOL "process-order.bas"
USE TOOL "faq-search"

SET CONTEXT "You are the assistant of a small hardware store."
SET CONTEXT "prices" AS "All prices include taxes."

ADD SUGGESTION "register" AS "Become a customer"
ADD SUGGESTION "order" AS "Order something"
ADD SUGGESTION "hours" AS "Opening hours"

BEGIN SYSTEM PROMPT
You are friendly and short.

Rules:
- IF somebody is angry, stay calm.
- Never promise discounts above 10%.
- Today's rates: "standard" and 'premium'.
END SYSTEM PROMPT

BEGIN TALK
**Welcome to the store!**

I can help you to:
• register as a customer
• place an order

What can I do for you?
END TALK
