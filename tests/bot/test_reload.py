"""Reload of settings at run time: changes of rights and safety apply from the next call, a running turn keeps all other
settings, and invalid settings change nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.live.settings import Reload
from bot.testing import Group, a_group, call
from config.loader import load_settings
from config.settings import Settings
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import FunctionResult
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.sources import ToldChanges, Written
from tests.harness.real_daemon import TOKEN, a_real_daemon

TEXTS = Texts().of("en")


def changed(group: Group, **sections: Any) -> Settings:
    """The current settings with these sections."""
    return Settings.model_validate({**group.daemon.live.now.model_dump(), **sections})


async def reload(group: Group, **sections: Any) -> bool:
    """Reload the settings with these sections; returns whether they were valid."""
    fresh = changed(group, **sections)
    return await Reload(group.daemon.live, lambda: fresh).now()


async def test_an_approval_rule_applies_from_the_next_call_until_it_is_removed_from_the_settings() -> None:
    pay = Recorder("pay", commands=["pay"])
    rule = {"required": [{"functions": ["pay"], "by": "admin"}]}
    async with a_group([pay.spec]) as group:
        assert await group.say("Ann", "/pay") == ["done"]
        assert await reload(group, approvals=rule)
        [asked] = await group.say("Ann", "/pay")
        assert "needs approval" in asked
        assert await reload(group, approvals={})
        assert await group.say("Ann", "/pay") == ["done"]
    assert len(pay.runs) == 2


async def test_a_rule_counts_within_the_turn_that_runs() -> None:
    pay = Recorder("pay")
    groups: list[Group] = []

    async def twice(context: MessageContext, arguments: dict[str, Any], call: Call) -> FunctionResult:
        await call.invoke("pay", {})
        await reload(groups[0], approvals={"required": [{"functions": ["pay"], "by": "admin"}]})
        return await call.invoke("pay", {})

    async with a_group([pay.spec, Recorder("twice", commands=["twice"], does=twice).spec]) as group:
        groups.append(group)
        [asked] = await group.say("Ann", "/twice")
        assert "pay" in asked
    assert len(pay.runs) == 1


async def test_the_approver_of_unvouched_calls_follows_the_settings() -> None:
    tell = Recorder("tell", touches="reaches_out")
    asked: list[str] = []
    async with a_group([tell.spec]) as group:
        for approver in ("asker", "owner"):
            assert await reload(group, approvals={"unvouched": approver})
            group.model.says(call("tell"))
            asked += (await group.say("Ann" if approver == "asker" else "Bob", "@Rollcall what is new?"))[-1:]
    assert tell.runs == []
    assert "owner" not in asked[0]
    assert "owner" in asked[1]


async def test_budgets_count_from_now_on_and_no_longer_than_they_are_set() -> None:
    dear = Recorder("dear", commands=["dear"], effect="idempotent")
    set_ = {"member": {"units": 1}, "functions": {"dear": 1}}
    async with a_group([dear.spec]) as group:
        await group.say("Ann", "/dear")
        assert await reload(group, budgets=set_)
        await group.say("Ann", "/dear")
        assert await group.say("Ann", "/dear") != ["done"]
        assert await reload(group, budgets={})
        assert await group.say("Ann", "/dear") == ["done"]
    assert len(dear.runs) == 3


async def test_a_budget_of_requests_counts_from_the_next_request_on() -> None:
    async with a_group() as group:
        group.model.says("One.", "Two.", "Three.")
        assert await group.say("Ann", "@Rollcall hello") == ["One."]
        assert await reload(group, budgets={"chat": {"requests": 1}})
        assert await group.say("Ann", "@Rollcall hello") == ["Two."]
        [spent] = await group.say("Ann", "@Rollcall hello")
        assert spent == TEXTS.say("budgets.model_chat")
        assert await reload(group, budgets={})
        assert await group.say("Ann", "@Rollcall hello") == ["Three."]


async def test_filters_stand_around_what_comes_next() -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec]) as group:
        assert await reload(group, filters={"turn": [{"blacklist": {"words": ["note"], "reply": False}}]})
        assert await group.say("Ann", "/note") == []
        assert await reload(group, filters={"call": [{"limits": {"calls_per_minute": 1}}]})
        assert await group.say("Ann", "/note") == ["done"]
        # Counts are kept when other settings change.
        assert await reload(group, filters=group.daemon.live.now.filters, router={"max_rounds": 5})
        assert await group.say("Ann", "/note") != ["done"]
        assert await reload(group, filters={})
        assert await group.say("Ann", "/note") == ["done"]


async def test_a_function_cannot_be_used_while_the_filter_that_it_names_is_gone() -> None:
    note = Recorder("note", commands=["note"], filters=["seldom"])
    named = {"named": {"seldom": {"limits": {"calls_per_minute": 5}}}}
    async with a_group([note.spec], settings={"filters": named}) as group:
        assert await reload(group, filters={})
        assert await group.say("Ann", "/note") != ["done"]
        [found] = group.daemon.functions.faults
        assert "'seldom'" in found.message
        assert await reload(group, filters=named)
        assert await group.say("Ann", "/note") == ["done"]
        assert group.daemon.functions.faults == ()


async def test_a_function_does_not_run_without_the_filter_that_is_taken_away_in_its_turn() -> None:
    inner = Recorder("inner", filters=["guard"])
    groups: list[Group] = []

    async def outer(context: MessageContext, arguments: dict[str, Any], call: Call) -> FunctionResult:
        await reload(groups[0], filters={})
        return await call.invoke("inner", {})

    named = {"named": {"guard": {"redaction": {}}}}
    functions = [inner.spec, Recorder("outer", commands=["outer"], does=outer).spec]
    async with a_group(functions, settings={"filters": named}) as group:
        groups.append(group)
        [said] = await group.say("Ann", "/outer")
        assert "went wrong" in said
    assert inner.runs == []


async def test_a_filter_in_a_file_of_ones_own_is_read_again_when_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "guard.py"
    file.write_text("async def guard(message, turn, dispatch):\n    return await dispatch(message, turn)\n")
    filters = {"turn": [{"python": {"file": str(file), "function": "guard"}}]}
    changes = ToldChanges()
    async with a_group(settings={"filters": filters}) as group:
        settings = group.daemon.live.now
        rereading = Reload(group.daemon.live, lambda: settings)
        following = asyncio.create_task(rereading.follow(tmp_path / "bot.yaml", changes))
        assert await group.say("Ann", "/calc 6*7") == ["6*7 = 42"]
        file.write_text("async def guard(message, turn, dispatch):\n    raise RuntimeError('stopped by the new one')\n")
        await rereading.now()
        assert "went wrong" in (await group.say("Ann", "/calc 6*7"))[0]
        file.write_text("def guard(:\n")
        assert not await rereading.now()
        assert "went wrong" in (await group.say("Ann", "/calc 6*7"))[0]
        assert "guard.py" in rereading.faults[0].message
        following.cancel()
        await asyncio.wait([following])
        assert changes.paths == [tmp_path / "bot.yaml", file]


async def test_new_settings_hold_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "guard.py").write_text("def guard(:\n")
    filters = {"turn": [{"python": {"file": str(tmp_path / "guard.py"), "function": "guard"}}]}
    off = {"calculate": {"enabled": False}}
    async with a_group() as group:
        before = group.daemon.live.now
        assert not await reload(group, filters=filters, functions=off, language="zh")
        assert group.daemon.live.now is before
        assert await group.say("Ann", "/calc 6*7") == ["6*7 = 42"]


async def test_a_turn_goes_on_with_the_numbers_that_it_began_with() -> None:
    groups: list[Group] = []

    async def shorten(*_: Any) -> str:
        await reload(groups[0], router={"max_rounds": 2})
        return "shortened"

    note = Recorder("note", {"text": {"type": "string", "description": "Which", "required": True}})
    async with a_group([note.spec, Recorder("shorten", does=shorten).spec]) as group:
        groups.append(group)
        group.model.says(call("shorten"), call("note", text="a"), call("note", text="b"), "Done.")
        assert await group.say("Ann", "@Rollcall shorten, then note a and b") == ["Done."]
        assert len(note.runs) == 2
        group.model.says(call("note", text="c"), "That was all.")
        await group.say("Ann", "@Rollcall note")
        assert group.model.requests[-1].tool_choice == "none"


async def test_limits_hold_for_what_comes_next() -> None:
    async with a_group() as group:
        group.model.says("One.", "Two.")
        await group.say("Ann", f"@Rollcall {'long ' * 100}")
        assert await reload(group, limits={"message_chars": 100})
        await group.say("Ann", f"@Rollcall {'long ' * 100}")
        long, short = (request.messages[-1].content.splitlines()[-1].count("long") for request in group.model.requests)
    assert long == 100
    assert short < 25


async def test_how_long_questions_wait_holds_for_those_that_are_asked_next() -> None:
    asks = Recorder("pay", {"what": {"type": "string", "description": "Which", "required": True}}, commands=["pay"])
    async with a_group([asks.spec]) as group:
        assert await reload(group, questions={"expires_seconds": 10})
        await group.say("Ann", "/pay")
        await group.clock.advance(11)
        await group.say("Ann", "rent")
        assert asks.runs == []
        assert await reload(group, questions={"expires_seconds": 300})
        await group.say("Ann", "/pay")
        await group.clock.advance(11)
        await group.say("Ann", "rent")
    assert asks.runs == [{"what": "rent"}]


FUNCTION = '''
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

@tool_function(commands=("{name}",), effect="read")
async def {name}(context: MessageContext) -> str:
    """Say its name."""
    return "{name}"
'''


async def test_sources_come_and_go_with_the_settings(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(FUNCTION.format(name=name))
    other = Written("other", Recorder("steady", commands=["steady"]).spec)
    async with a_group(sources=[other]) as group:
        for paths, one, two in (([], 0, 0), (["one"], 1, 0), (["two", "one"], 1, 1), (["two"], 0, 1)):
            assert await reload(group, sources={"python": [str(tmp_path / f"{name}.py") for name in paths]})
            await group.daemon.functions.wait_published()
            assert await group.say("Ann", "/steady") == ["done"]
            assert (await group.say("Ann", "/one") == ["one"]) is bool(one)
            assert (await group.say("Ann", "/two") == ["two"]) is bool(two)
    assert other.runs == 1


async def test_the_next_question_goes_to_the_new_model_and_an_old_token_opens_nothing(tmp_path: Path) -> None:
    def said(text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        return {"body": {"id": "r", "choices": [{"message": message, "finish_reason": "stop"}]}}

    async with (
        OpenAIServer([said("The old one.")]) as old,
        OpenAIServer([said("The new one.")]) as new,
        a_real_daemon(tmp_path, old.base_url) as daemon,
    ):
        await daemon.say("family", "m1", "good morning to all of you")
        assert await daemon.said("family", 1) == ["The old one."]
        file = tmp_path / "bot.yaml"
        file.write_text(file.read_text().replace(old.base_url, new.base_url))
        await until(lambda: "settings_reloaded" in daemon.log.read_text())
        await daemon.say("family", "m2", "good morning to all of you")
        assert await daemon.said("family", 2) == ["The old one.", "The new one."]
        file.write_text(file.read_text().replace(TOKEN, "a-token-that-nobody-knows"))
        async with asyncio.timeout(10):
            while await daemon.lets_in():  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.02)
        assert "a-token-that-nobody-knows" not in daemon.log.read_text()
        await daemon.told_to_stop()
        assert await daemon.ended() == 0


@pytest.mark.parametrize(
    ("section", "fresh", "waits"),
    [
        ("home", "elsewhere", ["home"]),
        ("logging", {"level": "debug"}, ["logging.level"]),
        ("router", {"max_rounds": 9, "shadow": {"max_per_hour": 3}}, ["router.shadow.max_per_hour"]),
        ("search", {"kind": "searxng", "url": "http://127.0.0.1:8888"}, ["search.kind", "search.url"]),
        ("platforms", {"web": {"port": 81}, "http": {"max_role": "admin"}}, ["http.max_role", "web.port"]),
    ],
)
async def test_what_nobody_takes_is_named_and_stays_as_it_was(section: str, fresh: Any, waits: list[str]) -> None:
    async with a_group() as group:
        before, settings = group.daemon.live.now, group.daemon.live.now.model_dump()
        given = {**settings[section], **fresh} if isinstance(fresh, dict) else fresh
        with capture_logs() as logs:
            # Relative paths do not matter here, because nothing is read from the folder.
            assert await reload(group, **{section: given, "logging": given if section == "logging" else before.logging})
        named = logs[-1]["from_the_next_start"]
        assert [one for one in named if one.endswith(tuple(waits))] == named
        assert len(named) >= len(waits)
        if section != "router":
            assert getattr(group.daemon.live.now, section) == getattr(before, section)
        else:
            assert group.daemon.live.now.router.max_rounds == 9
            assert group.daemon.live.now.router.shadow == before.router.shadow


async def test_a_new_name_of_the_bot_waits_for_the_next_start_everywhere() -> None:
    async with a_group() as group:
        bots = group.daemon.live.now.model_dump()["bots"]
        renamed = {"default": {**bots["default"], "name": "Nova", "aliases": ["star"], "persona": "Answer in rhymes."}}
        with capture_logs() as logs:
            assert await reload(group, bots=renamed)
        assert logs[-1]["from_the_next_start"] == ["bots.*.aliases", "bots.*.name"]
        assert logs[-1]["changed"] == ["bots"]
        group.model.says("Hello.")
        assert await group.say("Ann", "@Rollcall good morning") == ["Hello."]
        assert await group.say("Ann", "@Nova good morning") == []
        prompt = str(group.model.requests[-1])
    assert "Rollcall" in prompt
    assert "Nova" not in prompt
    assert "Answer in rhymes." in prompt


async def test_every_section_is_either_taken_or_waits() -> None:
    async with a_group() as group:
        tops = {path.split(".")[0] for path in group.daemon.live.paths}
    assert tops <= set(Settings.model_fields)
    assert {"approvals", "budgets", "filters", "members", "chats", "functions", "sources", "limits"} <= tops


USUAL = """\
home: {home}/var
logging: {{folder: {home}/logs, console: "off"}}
chats: {{allow: ["*"]}}
approvals: {{required: [{{functions: [pay], by: admin}}]}}
members: {{"test:bot:bob": admin}}
"""


class File:
    """The settings file of a group."""

    def __init__(self, group: Group, home: Path) -> None:
        self.usual = USUAL.format(home=home)
        self._path = home / "bot.yaml"
        self.reload = Reload(group.daemon.live, lambda: load_settings(self._path, {}))

    async def holds(self, text: str | bytes) -> bool:
        """Replace the content; returns whether it was valid."""
        self._path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return await self.reload.now()


@asynccontextmanager
async def a_settings_file(home: Path) -> AsyncIterator[tuple[Group, File, Recorder]]:
    pay = Recorder("pay", commands=["pay"])
    async with a_group([pay.spec], home=home) as group:
        file = File(group, home)
        assert await file.holds(file.usual)
        yield group, file, pay


async def test_no_row_of_bad_yaml_gets_in_and_the_last_good_settings_stay(
    tmp_path: Path, data: Callable[[str], Path]
) -> None:
    rows = [json.loads(line) for line in data("G_faults/yaml_config.jsonl").read_text().splitlines()]
    async with a_settings_file(tmp_path) as (group, file, pay):
        before = group.daemon.live.now
        for row in rows:
            assert not await file.holds(row["yaml"]), row["id"]
            assert group.daemon.live.now is before
            assert all(one.file.endswith("bot.yaml") and one.line for one in file.reload.faults)
            assert file.reload.faults
            [asked] = await group.say("Ann", "/pay")
            assert "needs approval" in asked or "already waiting for approval" in asked
        assert await file.holds(file.usual)
        assert file.reload.faults == ()
    assert pay.runs == []


async def test_mutated_settings_are_taken_whole_or_change_nothing(tmp_path: Path) -> None:
    random, taken = Random(7), 0
    async with a_settings_file(tmp_path) as (group, file, pay):
        for _ in range(250):
            text = bytearray(file.usual.encode())
            for _ in range(random.randint(1, 3)):
                place = random.randrange(len(text))
                written = bytes(random.choices(b"abz019:,{}[]#'\"-* \n\t\xff", k=random.randint(0, 2)))
                text[place : place + random.randint(0, 3)] = written
            before = group.daemon.live.now
            is_good = await file.holds(bytes(text))
            taken += is_good
            assert is_good is not bool(file.reload.faults)
            assert is_good or group.daemon.live.now is before
            if is_good:
                assert await file.holds(file.usual)
        assert 0 < taken < 250
        assert await file.holds(file.usual)
        assert "needs approval" in (await group.say("Ann", "/pay"))[0]
    assert pay.runs == []


async def test_a_fault_is_logged_once_and_its_mending_too(tmp_path: Path) -> None:
    changes = ToldChanges()
    async with a_settings_file(tmp_path) as (_, file, _):
        path = tmp_path / "bot.yaml"
        with capture_logs() as logs:
            following = asyncio.create_task(file.reload.follow(path, changes))
            for text in (file.usual, "a: [", "a: [", "a: [", file.usual, file.usual, f"{file.usual}# a comment\n"):
                path.write_text(text)
                await changes.told_and_heard()
            following.cancel()
            await asyncio.wait([following])
        assert [one["event"] for one in logs] == ["settings_invalid", "settings_not_reloaded", "settings_reloaded"]


STEPS = st.lists(
    st.sampled_from(["call", "call", "publish", "off", "on", "guard", "free", "deny", "allow"]), min_size=5, max_size=25
)


@effort(max_examples=12)
@given(steps=STEPS)
@pytest.mark.requirement("D66")
def test_a_turn_keeps_its_functions_while_rights_are_those_of_each_call(steps: list[str]) -> None:
    asyncio.run(_in_one_turn(steps))


async def _in_one_turn(steps: list[str]) -> None:
    """One turn that calls a function between reloads, compared with a model of the permitted results."""
    groups: list[Group] = []
    given: list[str] = []
    wanted: list[str] = []
    versions = iter(range(1, 100))

    def version() -> Any:
        return Recorder("inner", gives=f"version {next(versions)}").spec

    source = Written("files", version())

    async def outer(context: MessageContext, arguments: dict[str, Any], call: Call) -> str:
        group = groups[0]
        sections: dict[str, Any] = {"functions": {"inner": {}}, "approvals": {}}
        for step in steps:
            if step == "publish":
                source.write(version())
                await source.read()
            elif step == "call":
                result = await call.invoke("inner", {})
                text = result.error.code.value if result.error else "question" if result.question else result.reply
                given.append(text)
                setting = sections["functions"]["inner"]
                is_off = setting.get("enabled") is False or "roles" in setting
                wanted.append("refused" if is_off else "question" if sections["approvals"] else "version 1")
            else:
                sections |= {
                    "off": {"functions": {"inner": {"enabled": False}}},
                    "on": {"functions": {"inner": {}}},
                    "deny": {"functions": {"inner": {"roles": "owner"}}},
                    "allow": {"functions": {"inner": {}}},
                    "guard": {"approvals": {"required": [{"functions": ["inner"], "by": "owner"}]}},
                    "free": {"approvals": {}},
                }[step]
                assert await reload(group, **sections)
        return "over"

    async with a_group(
        [Recorder("outer", commands=["outer"], does=outer, timeout_seconds=300).spec], sources=[source]
    ) as group:
        groups.append(group)
        await group.say("Ann", "/outer")
    assert given == wanted
