DESCRIPTION "Make the tables of the club"
TABLE members
    id number key
    name string(50)
END TABLE
TABLE boats
    id number key
END TABLE
TALK "done"
