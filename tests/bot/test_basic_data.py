"""Data of scripts in a whole group: command, daemon, machine and store."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.testing import FAMILY
from config.texts import Texts
from services.refs import ChatRef
from tests.bot.basic_group import a_group_with
from tests.fakes.held import Held

EN = Texts().of("en")
WORK = ChatRef("test", "bot", "work")
ADD = """
PARAM name AS string LIKE "Ann" DESCRIPTION "Who"
PARAM age AS integer LIKE 30 DESCRIPTION "How old"
DESCRIPTION "Adds a person"
SAVE "people", name, age
n = GET BOT MEMORY("count") + 1
SET BOT MEMORY "count", n
REMEMBER "last_" + LOWER("X") = name
TALK "Person " + n + ": " + name
"""
LIST = """
DESCRIPTION "Lists people"
people = FIND "people" WHERE age >= 18 ORDER BY name
IF NOT people THEN
  TALK "nobody"
  RETURN
END IF
text = ""
FOR EACH person IN people
  text = text + person.name + " (" + person.age + ") "
NEXT
old = FILTER people, "age > 30"
TALK text + "| " + AGGREGATE("SUM", people, "age") + " | " + UBOUND(old) + " | " + RECALL("last_x")
"""
PRICES = """
DESCRIPTION "A price"
rec = FIND "prices.csv", "name = 'tea'"
TALK rec.name + " costs " + rec.price
"""


async def test_a_script_keeps_rows_and_memory_and_another_finds_them_again(tmp_path: Path) -> None:
    async with a_group_with(tmp_path / "scripts", home=tmp_path / "home", add=ADD, people=LIST) as group:
        assert await group.say("Ann", "/people") == ["nobody"]
        assert await group.say("Ann", "/add Ann 31") == ["Person 1: Ann"]
        assert await group.say("Bob", "/add Zoe 17") == ["Person 2: Zoe"]
        assert await group.say("Bob", "/add Bob 30") == ["Person 3: Bob"]
    async with a_group_with(tmp_path / "scripts", home=tmp_path / "home") as group:
        assert await group.say("Ann", "/people") == ["Ann (31) Bob (30) | 61 | 1 | Ann"]


async def test_no_other_chat_sees_it_unless_the_operator_shares_it(tmp_path: Path) -> None:
    everywhere = {"chats": {"allow": ["*"]}}
    async with a_group_with(tmp_path / "scripts", settings=everywhere, add=ADD, people=LIST) as group:
        await group.say("Ann", "/add Ann 31")
        assert await group.say("Ann", "/people", chat=WORK) == ["nobody"]
        assert await group.say("Ann", "/add Eve 20", chat=WORK) == ["Person 1: Eve"]
        assert await group.say("Ann", "/people", chat=FAMILY) == ["Ann (31) | 31 | 1 | Ann"]
    shared = {**everywhere, "source": {"shared_tables": ["people"], "shared_memory": ["count"]}}
    async with a_group_with(tmp_path / "scripts", settings=shared) as group:
        await group.say("Ann", "/add Ann 31")
        assert await group.say("Bob", "/add Eve 20", chat=WORK) == ["Person 2: Eve"]
        assert await group.say("Ann", "/people", chat=WORK) == ["Ann (31) Eve (20) | 51 | 1 | "]


async def test_a_file_beside_the_script_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "prices.csv").write_text("name;price\nmilk;2\ntea;3,50\n")
    async with a_group_with(folder, price=PRICES) as group:
        assert await group.say("Ann", "/price") == ["tea costs 3,50"]


@pytest.mark.parametrize(
    "counting",
    [
        'n = NVL(GET CHAT MEMORY "n", 0)\nSET CHAT MEMORY "n", n + 1\nCALL "slow", "a"\nTALK "visit " + (n + 1)',
        (
            'ON ERROR RESUME NEXT\nold = ""\nold = READ "log.txt"\nWRITE "log.txt", old + "x"\nCALL "slow", "a"\n'
            'TALK "visit " + LEN(READ("log.txt"))'
        ),
    ],
)
async def test_a_script_that_builds_on_what_it_kept_is_not_begun_again_after_a_crash(
    tmp_path: Path, counting: str
) -> None:
    home, scripts = tmp_path / "home", tmp_path / "scripts"
    slow = Held("slow")
    async with a_group_with(scripts, [slow.spec], visit=counting, home=home) as group:
        await group.hear("Ann", "/visit")
        await slow.has_begun("a")
        await group.crash()
    slow.let_go()
    async with a_group_with(scripts, [slow.spec], home=home) as group:
        await group.settle()
        [told] = [one.text for one in group.platform.sent]
        assert told == EN.say("failures.unknown_outcome", name="/visit")
        assert await group.say("Ann", "/visit") == ["visit 2"]
