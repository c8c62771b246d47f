DESCRIPTION "Counts as it was done in the old days"
CONST RATE = 2, NAME$ = "Ann"
N% = 5
LET S! = 1.5
D# = 3
x := N% * RATE
FOR I% = 1 TO 3
  PRINT I%; " ";
NEXT I%
PRINT "done"
PRINT "a";
TALK "between"
PRINT "b"
PRINT N% + 1, S! + D#
PRINT x; " "; NAME$
PRINT N% MOD 3
m = 7
PRINT m % 4
IF S! <> 2 THEN PRINT "yes";
PRINT "!"
