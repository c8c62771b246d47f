DESCRIPTION "FOR EACH without IN"
names = ["Ann", "Ben"]
FOR EACH name OF names
    TALK name
NEXT name
