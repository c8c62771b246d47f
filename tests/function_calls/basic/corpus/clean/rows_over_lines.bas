DESCRIPTION "Keeps rows, with the parts of each statement on lines of their own"
INSERT INTO t
  (id, name)
  VALUES ("1", "a")
INSERT INTO t (id, name)
VALUES
("2", "b")
UPDATE t
  SET qty = 5
  WHERE id = "1"
x = FIND t
  WHERE id = "1"
TALK x.qty
UPDATE t SET
  qty = 6,
  z = 2
WHERE
  id = "1"
x = FIND t WHERE id = "1"
TALK x.z
r = FIND t
 WHERE name <> "c"
 ORDER BY name DESC
 LIMIT 1
TALK r.name
r = FIND t ORDER
 BY name
TALK r[0].name + " " + r[1].name
DELETE FROM t
WHERE id = "1"
r = FIND t
TALK r.name
SAVE "u" WITH
  id AS "9",
  qty AS 7
r = FIND "u"
TALK r.qty
SAVE "u"
WITH id AS "9", name AS "u"
r = FIND "u"
TALK r.name
x = FIND "t"
SET y = 3
TALK y
SAVE "t", y
WITH row
 a = 4
END WITH
TALK row.a
where = 5
values = 6
limit = 7
