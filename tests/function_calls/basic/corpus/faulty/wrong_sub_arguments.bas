DESCRIPTION "Calls an own procedure with too many arguments"
SUB greet(who)
    TALK "hello " + who
END SUB
CALL greet("Ann")
CALL greet("Ann", "Ben")
