SET SCHEDULE "every monday at 9am"

orders = FIND "orders.csv", "status=paid"
count = UBOUND(orders)
revenue = 0
IF count > 0 THEN
    revenue = AGGREGATE "SUM", orders, "amount"
    average = AGGREGATE "AVG", orders, "amount"
ELSE
    average = 0
END IF

body = "Orders: " + count + "\n"
body = body + "Revenue: " + FORMAT(revenue, "#,##0.00") + "\n"
body = body + "Average: " + FORMAT(average, "#,##0.00") + "\n"
body = body + "Created: " + FORMAT(NOW(), "yyyy-MM-dd HH:mm")

SEND MAIL "boss@example.com", "Weekly report", body
SET BOT MEMORY "last_report", FORMAT(NOW(), "yyyy-MM-dd")
PRINT "weekly report sent"
