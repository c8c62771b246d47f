DESCRIPTION "Asks for a type that does not exist"
TALK "Your favourite?"
HEAR favourite AS SOUFFLE
TALK favourite
