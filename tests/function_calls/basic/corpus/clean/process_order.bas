PARAM customer_name AS string LIKE "John Doe" DESCRIPTION "Customer's full name"
PARAM order_amount AS number LIKE 99.99 DESCRIPTION "Total order amount"
PARAM shipping_address AS string LIKE "123 Main St" DESCRIPTION "Delivery address"

DESCRIPTION "Process a new customer order"

# free shipping from 50 on
shipping = 4.9
IF order_amount >= 50 THEN shipping = 0

total = order_amount + shipping
TALK "Processing order for " + customer_name
TALK "Total: $" + FORMAT(total, "#,##0.00") + " to " + shipping_address   # what is charged
RETURN total
