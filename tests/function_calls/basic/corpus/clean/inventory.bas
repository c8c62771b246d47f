DESCRIPTION "Keeps a small stock: puts in, takes out and reports"

SAVE "stock.csv", #{ sku: "A1", name: "Hammer", quantity: 12, price: 9.5 }
SAVE "stock.csv", #{ sku: "B2", name: "Saw", quantity: 3, price: 14 }
SAVE "stock.csv", #{ sku: "C3", name: "Nails", quantity: 900, price: 0.02 }

item = FIND "stock.csv", "sku=B2"
TALK item.name + ": " + item.quantity

UPDATE "stock.csv", "sku=B2", #{ quantity: item.quantity + 7 }
item = FIND "stock.csv", "sku=B2"
TALK item.name + ": " + item.quantity

low = FIND "stock.csv", "quantity<11"
FOR EACH row IN low
    TALK "Order more: " + row.name
NEXT row

all = FIND "stock.csv"
total = AGGREGATE "SUM", all, "quantity"
most = AGGREGATE "MAX", all, "price"
TALK total + " pieces, the dearest costs " + most
RETURN total
