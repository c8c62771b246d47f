DESCRIPTION "Blocks within blocks"
hits = 0
FOR a = 1 TO 3
  FOR b = 1 TO 3
    IF a <> b THEN
      SELECT CASE a + b
        CASE 3, 4
          c = 0
          DO WHILE c < 5
            c = c + 1
            IF c = 2 THEN
              CONTINUE
            END IF
            WHILE TRUE
              IF c >= 4 THEN
                EXIT DO
              ELSE
                hits = hits + 1
                EXIT WHILE
              END IF
            END WHILE
          LOOP
        CASE ELSE
          FOR EACH z IN [1, 2]
            IF z = 2 THEN
              EXIT FOR
            END IF
            hits = hits + 10
          END FOR
      END SELECT
    END IF
  NEXT b
NEXT a
TALK "hits: " + hits
RETURN hits
