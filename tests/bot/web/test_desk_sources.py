"""Sources on the desk: problems, and the editor of scripts."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.web.desk.accounts import DeskRole
from services.store.chats import script_data
from tests.bot.test_traces import a_receiver
from tests.harness.desk import a_desk

GOOD = 'PARAM who AS string LIKE "Ann" DESCRIPTION "Whom"\nDESCRIPTION "Greet"\nTALK "Hello"\nRETURN 1\n'


async def test_a_script_is_checked_while_typing_saved_and_compiled(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "greet.bas").write_text(GOOD, encoding="utf-8")
    async with a_desk(settings={"sources": {"basic": [str(scripts)]}}) as world, world.person() as owner:
        assert "greet.bas" in (await owner.get("/desk/sources")).text
        editor = await owner.get("/desk/sources/script?id=0/greet.bas")
        assert "No problems found" in editor.text
        broken = {"id": "0/greet.bas", "text": GOOD.replace('TALK "Hello"', "IF 1 THEN")}
        checked = await owner.post("/desk/sources/check", broken)
        assert "greet.bas:3" in checked.text
        assert (scripts / "greet.bas").read_text(encoding="utf-8") == GOOD
        better = {"id": "0/greet.bas", "text": GOOD.replace("Hello", "Good morning").replace("\n", "\r\n")}
        assert (await owner.post("/desk/sources/script", better)).status_code == 303
        assert (scripts / "greet.bas").read_text(encoding="utf-8") == GOOD.replace("Hello", "Good morning")


async def test_a_new_script_is_written_into_the_folder_of_a_source_only(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    async with a_desk(settings={"sources": {"basic": [str(scripts)]}}) as world, world.person() as owner:
        assert (await owner.post("/desk/sources/new", {"name": "hello", "source": "0"})).status_code == 200
        assert (await owner.post("/desk/sources/script", {"id": "0/hello.bas", "text": GOOD})).status_code == 303
        assert (scripts / "hello.bas").exists()
        for outside in ("0/../evil.bas", "0//etc/passwd", "7/x.bas", "0/a/b.bas", "/x.bas"):
            assert (await owner.post("/desk/sources/script", {"id": outside, "text": GOOD})).status_code == 404
        assert [file.name for file in tmp_path.rglob("*.bas")] == ["hello.bas"]


async def test_only_owners_change_scripts(tmp_path: Path) -> None:
    (tmp_path / "greet.bas").write_text(GOOD, encoding="utf-8")
    settings = {"sources": {"basic": [str(tmp_path)]}}
    async with a_desk(settings=settings) as world, world.person(DeskRole.OPERATOR) as operator:
        assert "readonly" in (await operator.get("/desk/sources/script?id=0/greet.bas")).text
        sent = {"id": "0/greet.bas", "text": "x"}
        assert (await operator.post("/desk/sources/script", sent)).status_code == 403
        assert (tmp_path / "greet.bas").read_text(encoding="utf-8") == GOOD


async def test_problems_of_functions_are_listed(tmp_path: Path) -> None:
    (tmp_path / "bad.bas").write_text('DESCRIPTION "x"\nIF 1 THEN\n', encoding="utf-8")
    settings = {"sources": {"basic": [str(tmp_path)]}}
    async with a_desk(settings=settings) as world, world.person(DeskRole.VIEWER) as viewer:
        assert "bad.bas:2" in (await viewer.get("/desk/sources")).text


async def test_a_new_script_is_offered_for_folders_by_their_place_among_all_sources(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    bucket = {"s3": {"url": "s3://scripts", "endpoint": "http://127.0.0.1:9"}}
    async with a_desk(settings={"sources": {"basic": [bucket, str(scripts)]}}) as world, world.person() as owner:
        page = (await owner.get("/desk/sources")).text
        assert f'<option value="1">{scripts}</option>' in page
        assert '<option value="0">' not in page
        assert (await owner.post("/desk/sources/new", {"name": "hello", "source": "0"})).status_code == 404


ASKS = """\
PARAM who AS string LIKE "Ann" DESCRIPTION "Who is greeted"
PARAM times AS integer LIKE 2 DESCRIPTION "How often" DEFAULT 1
DESCRIPTION "Greets somebody"
FOR i = 1 TO times
    TALK "<b>Hello</b> " + who
NEXT
TALK "Which size?"
HEAR size AS "Small", "Large"
RETURN #{size: size}
"""


async def test_the_text_of_the_editor_is_tried_with_arguments_and_answers(tmp_path: Path) -> None:
    (tmp_path / "greet.bas").write_text(GOOD, encoding="utf-8")
    async with a_desk(settings={"sources": {"basic": [str(tmp_path)]}}) as world, world.person() as owner:
        assert 'name="argument.greet.who"' in (await owner.get("/desk/sources/script?id=0/greet.bas")).text
        sent = {"id": "0/greet.bas", "text": ASKS, "argument.greet.who": "Bo", "argument.greet.times": "2"}
        fields = (await owner.post("/desk/sources/check", sent)).text
        assert 'name="argument.greet.times" value="2"' in fields
        asked = (await owner.post("/desk/sources/try", sent)).text
        assert asked.count("&lt;b&gt;Hello&lt;/b&gt; Bo") == 2
        assert "waits for an answer" in asked
        ended = (await owner.post("/desk/sources/try", {**sent, "answers": "Small\r\n"})).text
        assert "[Small]" in ended
        assert "<code>{&#34;size&#34;: &#34;Small&#34;}</code>" in ended
        assert (tmp_path / "greet.bas").read_text(encoding="utf-8") == GOOD
        assert await world.group.daemon.store.read(script_data.ALL_ROWS) == []


async def test_errors_of_a_tried_script_are_shown_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "greet.bas").write_text(GOOD, encoding="utf-8")
    async with a_desk(settings={"sources": {"basic": [str(tmp_path)]}}) as world, world.person() as owner:
        sent = {"id": "0/greet.bas", "text": 'DESCRIPTION "Divide"\nx = 0\nRETURN 1 / x\n'}
        assert "line 3, column" in (await owner.post("/desk/sources/try", sent)).text
        broken = {**sent, "text": 'DESCRIPTION "Divide"\nIF 1 THEN\n'}
        assert "The script cannot run" in (await owner.post("/desk/sources/try", broken)).text


async def test_a_tried_script_reaches_no_server_and_keeps_its_rows_to_itself(tmp_path: Path) -> None:
    (tmp_path / "greet.bas").write_text(GOOD, encoding="utf-8")
    async with a_desk(settings={"sources": {"basic": [str(tmp_path)]}}) as world, world.person() as owner:
        text = 'DESCRIPTION "Read"\nSAVE "seen", "a", 1\npage = GET "https://example.org/"\nRETURN page\n'
        tried = (await owner.post("/desk/sources/try", {"id": "0/greet.bas", "text": text})).text
        assert "Error:" in tried
        assert "allowed to reach example.org" in tried
        assert await world.group.daemon.store.read(script_data.ALL_ROWS) == []


async def test_one_script_is_tried_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "greet.bas").write_text(GOOD, encoding="utf-8")
    async with a_desk(settings={"sources": {"basic": [str(tmp_path)]}}) as world, world.person() as owner:
        sent = {"id": "0/greet.bas", "text": GOOD, "argument.greet.who": "Bo"}
        both = await asyncio.gather(*(owner.post("/desk/sources/try", sent) for _ in range(2)))
        assert sorted("A trial is running already" in tried.text for tried in both) == [False, True]
        assert "Hello" in (await owner.post("/desk/sources/try", sent)).text


async def test_only_owners_try_scripts(tmp_path: Path) -> None:
    (tmp_path / "greet.bas").write_text(GOOD, encoding="utf-8")
    settings = {"sources": {"basic": [str(tmp_path)]}}
    async with a_desk(settings=settings) as world, world.person(DeskRole.OPERATOR) as operator:
        assert "/desk/sources/try" not in (await operator.get("/desk/sources/script?id=0/greet.bas")).text
        assert (await operator.post("/desk/sources/try", {"id": "0/greet.bas", "text": GOOD})).status_code == 403


async def test_a_tried_script_sends_no_traces(tmp_path: Path) -> None:
    (tmp_path / "greet.bas").write_text(GOOD, encoding="utf-8")
    async with a_receiver() as receiver:
        settings = {"sources": {"basic": [str(tmp_path)]}, "telemetry": {"traces_url": receiver.url}}
        async with a_desk(settings=settings) as world, world.person() as owner:
            sent = {"id": "0/greet.bas", "text": GOOD, "argument.greet.who": "Bo"}
            assert "Hello" in (await owner.post("/desk/sources/try", sent)).text
        assert receiver.spans == []
