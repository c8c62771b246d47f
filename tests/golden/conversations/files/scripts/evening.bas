DESCRIPTION "Decide how the evening goes"

sum = CALL "calculate", "15% of 80"
task = CREATE TASK "Wash up", username
TALK "The tip is ${sum.value}, and task ${task} is for ${username}."
