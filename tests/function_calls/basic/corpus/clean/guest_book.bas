DESCRIPTION "Statements about tables in their other spelling"

INSERT INTO "guests" VALUES #{ name: "Ann", seats: 2, paid: "no" }
INSERT "guests", #{ name: "Ben", seats: 4, paid: "no" }
SAVE "guests", #{ name: "Cyd", seats: 1, paid: "yes" }

UPDATE "guests" SET paid = "yes" WHERE name = "Ben"
paid = FIND "guests", "paid=yes AND seats>=1"
FOR EACH g IN paid
    TALK g.name
NEXT g
DELETE "guests", "name=Ann"
rest = FIND "guests"
RETURN UBOUND(rest)
