DESCRIPTION "SUB is not ended"
SUB greet(who)
    TALK "hello " + who

CALL greet("Ann")
