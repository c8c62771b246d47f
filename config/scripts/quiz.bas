' Three questions with buttons, and the best result of this chat.
' /quiz

DESCRIPTION "Play a quiz of three questions with a member"

quiz = [
    #{ question: "Which planet is the largest?", answers: ["Earth", "Jupiter", "Mars"], right: "Jupiter" },
    #{ question: "How many legs does a spider have?", answers: ["6", "8", "10"], right: "8" },
    #{ question: "Which river flows through Paris?", answers: ["Seine", "Thames", "Rhine"], right: "Seine" }
]
points = 0

FOR EACH round IN quiz
    TALK round.question
    HEAR given AS round.answers
    IF given = round.right THEN
        points = points + 1
        TALK "Right!"
    ELSE
        TALK "No, it is ${round.right}."
    END IF
NEXT

TALK "${username}, you have ${points} of ${UBOUND(quiz)}."

best = GET CHAT MEMORY "quiz best"
IF best IS NULL OR points > best.points THEN
    SET CHAT MEMORY "quiz best", #{ name: username, points: points }
    TALK "That is the best result so far!"
ELSE
    TALK "The best is ${best.name} with ${best.points}."
END IF
RETURN points
