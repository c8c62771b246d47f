"""Random inputs of the BASIC language: scripts, most of them damaged."""

from __future__ import annotations

from random import Random

SCRIPTS = (
    """PARAM name AS string LIKE "Mia" DESCRIPTION "Who"
DESCRIPTION "Greets"
TALK "Hello, " + name
RETURN "done"
""",
    """' counts
total = 0
FOR i = 1 TO 10 STEP 2
    IF i MOD 3 = 0 THEN CONTINUE FOR
    total = total + i
NEXT i
IF total > 10 AND NOT total = 12 THEN
    TALK "It is ${total}, or ${FORMAT(total, "0.00")}"
ELSE IF total = 0 THEN
    TALK "none"
ELSE
    TALK 'few'
END IF
""",
    """rows = [{"id": 1, "name": "a"}, #{id: 2, name: "b"}]
FOR EACH row IN rows
    row.name = UCASE(row.name) & row["id"]
    PUSH names, row.name
END FOR
RETURN JOIN(names, ", ")
""",
    """SELECT CASE x
    CASE 1, 2
        TALK "low"
    CASE 3 TO 9
        TALK "middle"
    CASE IS >= 10
        TALK "high"
    CASE ELSE
        TALK "none"
END SELECT
SWITCH y
    CASE "a"
        x = 1
    DEFAULT
        x = 2
END SWITCH
""",
    """FUNCTION fact(n)
    IF n <= 1 THEN RETURN 1
    fact = n * fact(n - 1)
END FUNCTION
SUB show(what, times)
    DO WHILE times > 0
        TALK what
        times = times - 1
    LOOP
END SUB
CALL show("x", 2)
show fact(5), 1
""",
    """ON ERROR RESUME NEXT
page = GET "https://example.org/${q}"
IF ERROR THEN
    TALK ERROR MESSAGE
    THROW "no page"
END IF
ON ERROR GOTO sorry
x = 1 / 0
END
sorry:
ASSERT ERR = 11, "which?"
""",
    """WITH order
    id = 7
    .total = 2.5E1 * 3
    WITH customer
        name = "Mia"
    END WITH
END WITH
SAVE "orders", order
HEAR answer AS "yes", "no"
order.customer.name = answer
""",
    """10 n = n + 1
20 IF n < 5 THEN GOTO 10
GOSUB twice
END
twice:
n = n * 2 ^ 2 \\ 3
RETURN
""",
    """BEGIN TALK
Dear ${name},
your total is ${total * 1.2}.
END TALK
WHILE a <> b OR a IN [1, 2, 3]
    a = a + 1
    IF a > 5 THEN EXIT WHILE
WEND
DO
    b = b - 1
LOOP UNTIL b <= 0
""",
    """DIM a(10)
a(1) = 5 : a(2) = a(1) + 1
LET s$ = "x" + STR(a(2)) _
    + "y"
m = {
    "k": [1, 2,
        3],
    "j": TRUE
}
IF m.k[0] IS NOT NULL AND s$ LIKE "x*" THEN RETURN m ELSE RETURN NULL
""",
)
_LANGUAGE = """
IF THEN ELSE ELSEIF END FOR EACH IN TO STEP NEXT WHILE WEND DO LOOP UNTIL SELECT SWITCH CASE DEFAULT IS NOT NULL AND OR
MOD LIKE SUB FUNCTION RETURN CALL GOTO GOSUB EXIT CONTINUE BREAK WITH ON ERROR RESUME THROW ASSERT DIM LET SET PARAM AS
DESCRIPTION OPTIONAL ENUM BEGIN TALK HEAR GET SAVE FIND STOP REM a b list i x$ 10 0 1 -1 2.5 1E999 99999999999999999999
LEN UCASE SPLIT PUSH STRING REPEAT NOW RND TRUE ( ) [ ] { } #{ , . : ; = <> < <= > >= + - * / \\ ^ & " ' ` ${ } // #
"""
_OTHERS = (
    *("\n", "\n", "\n", "    ", "\t", "\r\n", "\\n", "\0", '"text"', "'it'", '"${a}"', '"${'),
    *("é", "中文", "\u202e", "\ud800"),
)
WORDS = (*_LANGUAGE.split(), *_OTHERS)


def a_text(random: Random) -> str:
    """A text; depends only on the state of `random`."""
    kind = random.random()
    if kind < 0.6:
        return _spoilt(random, random.choice(SCRIPTS))
    if kind < 0.75:
        return _spoilt(random, random.choice(SCRIPTS) + random.choice(SCRIPTS))
    if kind < 0.95:
        return " ".join(random.choice(WORDS) for _ in range(random.randrange(40)))
    return "".join(chr(random.choice((random.randrange(128), random.randrange(0x3000)))) for _ in range(60))


def _spoilt(random: Random, text: str) -> str:
    for _ in range(random.choice((0, 1, 1, 1, 2, 3, 8))):
        lines = text.split("\n")
        place = random.randrange(len(lines))
        spoil = random.choice((_without_line, _twice, _swapped, _word_in_line, _word_for_word, _cut))
        text = spoil(random, lines, place)
    return text


def _without_line(random: Random, lines: list[str], place: int) -> str:
    return "\n".join(lines[:place] + lines[place + 1 :])


def _twice(random: Random, lines: list[str], place: int) -> str:
    return "\n".join([*lines[:place], lines[place], *lines[place:]])


def _swapped(random: Random, lines: list[str], place: int) -> str:
    other = random.randrange(len(lines))
    lines[place], lines[other] = lines[other], lines[place]
    return "\n".join(lines)


def _word_in_line(random: Random, lines: list[str], place: int) -> str:
    words = lines[place].split(" ")
    words.insert(random.randrange(len(words) + 1), random.choice(WORDS))
    lines[place] = " ".join(words)
    return "\n".join(lines)


def _word_for_word(random: Random, lines: list[str], place: int) -> str:
    words = lines[place].split(" ")
    words[random.randrange(len(words))] = random.choice(WORDS)
    lines[place] = " ".join(words)
    return "\n".join(lines)


def _cut(random: Random, lines: list[str], place: int) -> str:
    text = "\n".join(lines)
    start = random.randrange(len(text) + 1)
    return text[:start] + text[start + random.randrange(5) :]
