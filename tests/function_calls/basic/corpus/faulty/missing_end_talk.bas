DESCRIPTION "BEGIN TALK is not ended"
name = "Ann"
BEGIN TALK
Hello ${name},
how are you?
RETURN name
