DESCRIPTION "A value within a text is not closed"
name = "Ann"
TALK "Hello ${name"
TALK "bye"
