DESCRIPTION "Close what is open"
UPDATE "tasks" SET done = TRUE WHERE
TALK "All are closed."
