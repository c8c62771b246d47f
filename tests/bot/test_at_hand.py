"""Functions on request: a chat activates them by name, and only then they are offered to a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from bot.testing import FAMILY, Group, call
from config.texts import Texts
from function_calls.context import Kind
from function_calls.loading.source import Publish, Snapshot
from function_calls.spec import FunctionSpec, ToolGroup
from services.refs import MemberRef, Role
from services.store.chats import chat_settings
from services.store.chats.chat_settings import ACTIVATIONS
from services.store.turns import audit
from services.store.turns.audit import AUDIT
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held
from tests.fakes.kept import heard, kept, last_reason
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

EN = Texts().of("en")
WORK = FAMILY._replace(native="work")


def sonar(**options: Any) -> Recorder:
    return Recorder("sonar", CITY, activation="on_request", gives="ping", **options)


@dataclass(slots=True)
class Grouped:
    """A source with groups."""

    groups: Sequence[ToolGroup]
    specs: Sequence[FunctionSpec] = ()
    name: str = "grouped"
    publish: Publish | None = field(default=None)

    async def run(self, publish: Publish) -> None:
        self.publish = publish
        publish(Snapshot(tuple(self.specs), tuple(self.groups)))


def offered(group: Group) -> list[str]:
    """Function names in the latest request."""
    offer = group.model.requests[-1].offer
    return list(offer.by_name) if offer is not None else []


def asked(group: Group) -> str:
    """The member's message in the latest request."""
    return group.model.requests[-1].messages[-1].content.rpartition("---\n")[2]


async def names(group: Group) -> list[str]:
    return [name for (name,) in await kept(group, ACTIVATIONS.c.name)]


@pytest.mark.requirement("C2", "D28")
@over_each_protocol
async def test_a_mention_puts_a_function_to_hand_and_is_no_part_of_what_is_said(tmp_path: Path) -> None:
    function = sonar()
    async with a_group([function.spec], home=tmp_path) as group:
        group.model.says("Hello.")
        await group.say("Ann", "@Rollcall hello")
        assert "sonar" not in offered(group)
        group.model.says(call("sonar", city="Oslo"), "Ping, it says.")
        assert await group.say("Ann", "what does @sonar hear in Oslo?") == ["Ping, it says."]
        assert function.runs == [{"city": "Oslo"}]
        assert "sonar" in offered(group)
        assert [one.messages[-1].content for one in group.model.requests if "@sonar" in str(one.messages)] == []
        assert ("Ann", "what does hear in Oslo?") in await heard(group)
    # It stays active for all members of the chat, and in no other chat.
    async with a_group([function.spec], home=tmp_path) as group:
        group.model.says("Hello.", "Hello.")
        await group.say("Bob", "@Rollcall hello")
        assert "sonar" in offered(group)
        await group.say("Ann", "@Rollcall hello", chat=WORK)
        assert "sonar" not in offered(group)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("@sonar, listen", "listen"),
        ("@SONAR listen", "listen"),
        ("listen (@sonar)", "listen ()"),
        ("listen @sonar.", "listen."),
        ("请用@sonar查奥斯陆", "请用查奥斯陆"),
        ("请用＠sonar 查", "请用 查"),
        ("@sonar @sonar listen", "listen"),
    ],
)
async def test_it_is_found_on_the_borders_of_words(text: str, left: str) -> None:
    async with a_group([sonar().spec]) as group:
        group.model.says("Well.")
        await group.say("Ann", text)
        assert asked(group) == left
        assert await names(group) == ["sonar"]


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    "text",
    [
        "write to ann@sonar about it",
        "me@sonar.org",
        "@sonar.org is a member",
        "@sonars",
        "@sonar-x",
        "@sonar_x",
        "@sonar:server.org",
        "https://x.org/@sonar",
        "sonar",
        "@other",
    ],
)
async def test_what_only_looks_like_it_is_no_mention(text: str) -> None:
    async with a_group([sonar().spec]) as group:
        assert await group.say("Ann", text) == []
        assert await last_reason(group) == ("not_addressed", "")
        assert await names(group) == []


async def test_a_member_of_that_name_is_meant_where_the_network_says_so() -> None:
    async with a_group([sonar().spec]) as group:
        mentioned = MemberRef("test", "bot", "sonar")
        assert await group.say("Ann", "@sonar hello", mentions=(mentioned,)) == []
        assert await group.say("Ann", "@sonar hello", mentions=(mentioned._replace(native="u17"),)) == []
        assert await names(group) == []
        # The message names the function but is for somebody else.
        group.model.says("Well.")
        await group.say("Ann", "bob: ask @sonar", mentions=(mentioned._replace(native="bob-17"),))
        assert await names(group) == ["sonar"]


@pytest.mark.requirement("C2")
async def test_a_name_alone_is_answered_and_more_is_not_commented_upon() -> None:
    async with a_group([sonar().spec]) as group:
        assert await group.say("Ann", "@sonar") == ["Now in use in this chat: sonar."]
        assert await last_reason(group) == ("command", "use_tools")
        assert await group.say("Ann", "@sonar") == ["Already in use in this chat: sonar."]
        group.model.says("Hm.")
        assert await group.say("Ann", "@sonar hm") == ["Hm."]
        actions = await kept(group, AUDIT.c.actor, AUDIT.c.action, AUDIT.c.detail)
        assert actions == [("test:bot:ann", "at_hand", "use sonar")]


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_chat_goes_on_as_chat_after_it() -> None:
    async with a_group([sonar().spec]) as group:
        group.model.says(call("none"), "Just chatting.")
        assert await group.say("Ann", "@sonar how are you") == ["Just chatting."]
        assert (await last_reason(group))[0] == "chat"


async def test_a_command_may_follow_the_name() -> None:
    function = Recorder("note", commands=["note"])
    async with a_group([sonar().spec, function.spec]) as group:
        assert await group.say("Ann", "@sonar /note") == ["done"]
        assert await names(group) == ["sonar"]


async def test_what_a_command_is_given_stays_as_it_was_written() -> None:
    async with a_group([sonar().spec]) as group:
        await group.say("Ann", "/todo add ask @sonar about it")
        assert "ask @sonar about it" in (await group.say("Ann", "/todo"))[0]
        assert await names(group) == []


async def test_an_edit_that_names_it_counts_while_the_message_waits() -> None:
    held = Held()
    async with a_group([sonar().spec, held.spec]) as group:
        await group.hear("Bob", "/hold it")
        await held.has_begun("it")
        await group.hear("Ann", "@Rollcall listen", id="x1")
        await group.hear("Ann", "@Rollcall @sonar listen well", id="x1", kind=Kind.EDIT)
        group.model.says("Well.")
        held.let_go()
        await group.settle()
        assert asked(group) == "listen well"
        assert await names(group) == ["sonar"]


async def test_a_name_is_no_answer_to_a_question() -> None:
    rain = Recorder("rain", CITY, commands=["rain"])
    async with a_group([sonar().spec, rain.spec]) as group:
        await group.say("Ann", "/rain")
        assert await group.say("Ann", "@sonar") == ["Now in use in this chat: sonar."]
        assert await group.say("Ann", "Oslo") == ["done"]


# -- commands


@pytest.mark.requirement("C2")
async def test_commands_take_to_hand_list_and_put_away() -> None:
    source = Grouped([ToolGroup("deep", "Things of the sea. Many.", ("sonar", "radar"))])
    specs = [
        sonar().spec,
        Recorder("radar", activation="on_request").spec,
        Recorder("probe", activation="on_request").spec,
    ]
    async with a_group(specs, sources=[source]) as group:
        [listed] = await group.say("Ann", "/tools")
        assert listed.splitlines() == [
            EN.say("tools.none_at_hand"),
            EN.say("tools.could_be"),
            "• deep: Things of the sea (sonar, radar)",
            "• sonar: Does sonar",
            "• radar: Does radar",
            "• probe: Does probe",
        ]
        assert await group.say("Ann", "/use @Deep, probe") == ["Now in use in this chat: deep, probe."]
        group.model.says("Hm.")
        await group.say("Ann", "@Rollcall hm")
        assert {"sonar", "radar", "probe"} <= set(offered(group))
        assert await group.say("Ann", "/unuse sonar") == [
            EN.say("tools.not_at_hand", names="sonar", at_hand="deep, probe")
        ]
        assert await group.say("Ann", "/unuse DEEP") == ["No longer in use in this chat: deep."]
        group.model.says("Hm.")
        await group.say("Ann", "@Rollcall hm")
        assert "sonar" not in offered(group)
        assert "probe" in offered(group)
        assert await group.say("Ann", "/use none") == ["No longer in use in this chat: probe."]
        assert await group.say("Ann", "/unuse all") == [EN.say("tools.none_at_hand")]
        assert await names(group) == []


async def test_both_languages_have_the_commands() -> None:
    settings = {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"language": "zh"}}}}
    zh = Texts().of("zh")
    async with a_group([sonar().spec], settings=settings) as group:
        assert await group.say("Ann", "/使用 sonar") == [zh.say("tools.taken", names="sonar")]
        assert "sonar" in (await group.say("Ann", "/工具"))[0]
        assert await group.say("Ann", "/停用 全部") == [zh.say("tools.put_away", names="sonar")]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (
            "/use sonr",
            "I can't find sonr among the functions you can add. /tools lists them. Did you mean sonar?",
        ),
        ("/use roll_dice", "“roll_dice” is always available, so there is no need to add it."),
        ("/unuse x", "These are not in use in this chat: x. In use: –"),
    ],
)
async def test_what_cannot_be_taken_is_said(line: str, answer: str) -> None:
    async with a_group([sonar().spec]) as group:
        assert await group.say("Ann", line) == [answer]


async def test_a_chat_has_so_many_at_hand_and_no_more() -> None:
    specs = [Recorder(f"tool{number}", activation="on_request").spec for number in range(22)]
    async with a_group(specs) as group:
        await group.say("Ann", "/use " + " ".join(f"tool{number}" for number in range(19)))
        [refused] = await group.say("Ann", "/use tool19 tool20")
        assert refused.startswith("At most 20 can be in use at once.")
        assert len(await names(group)) == 19
        assert await group.say("Ann", "@tool19") == ["Now in use in this chat: tool19."]
        [refused] = await group.say("Ann", "@tool21 do it")
        assert refused.startswith("At most 20")
        # An active function needs no additional space.
        assert await group.say("Ann", "/use tool3") == ["Already in use in this chat: tool3."]


async def test_settings_restrict_who_may_as_for_any_function() -> None:
    settings = {"chats": {"allow": ["*"]}, "functions": {"use_tools": {"roles": "admin"}}}
    async with a_group([sonar().spec], settings=settings) as group:
        refused = [EN.say("refusals.role", name="/use", detail="admin")]
        assert await group.say("Ann", "@sonar listen") == refused
        assert await group.say("Ann", "/use sonar") == refused
        assert await names(group) == []
        assert await group.say("Bob", "@sonar", role=Role.ADMIN) == ["Now in use in this chat: sonar."]
        # Active functions may be named by everybody.
        group.model.says("Well.")
        assert await group.say("Ann", "@sonar listen") == ["Well."]


# -- names of functions


@pytest.mark.requirement("C2", "C17", "D28")
@over_each_protocol
async def test_what_is_not_at_hand_may_be_called_by_command_and_never_by_a_model() -> None:
    function = sonar(commands=["sonar"])
    async with a_group([function.spec]) as group:
        assert await group.say("Ann", "/sonar Oslo") == ["ping"]
        group.model.says(call("sonar", city="Rome"), "I can't.")
        assert await group.say("Ann", "@Rollcall listen there") == ["I can't."]
        assert function.runs == [{"city": "Oslo"}]
        told = orjson.loads(group.model.requests[-1].messages[-1].content)
        assert told["error"] == "refused"
        assert "@sonar" in told["message"]
        assert await last_reason(group) == ("refused", "/use sonar")


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_what_was_put_away_in_the_midst_of_a_turn_is_not_called_any_more() -> None:
    function = sonar()

    async def away(context: Any, arguments: Any, own: Any) -> Any:
        return await own.invoke("put_away_tools", {"names": "all"})

    async with a_group(
        [function.spec, Recorder("away", does=away, effect="idempotent", touches="stays_here").spec]
    ) as group:
        await group.say("Ann", "@sonar")
        group.model.says([call("away"), call("sonar", city="Oslo")], "Hm.")
        await group.say("Ann", "@Rollcall do both")
    assert function.runs == []


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_it_is_always_sent_and_found_among_many() -> None:
    many = [Recorder(f"gadget{number}", description=f"Does thing{number}.").spec for number in range(60)]
    function = Recorder("sonar", activation="on_request", description="Listens to the whales.", gives="ping")
    async with a_group([*many, function.spec], settings={"router": {"shortlist": 6}}) as group:
        group.model.says("Hi.", call("find_functions", query="listens whales"), "Hm.")
        await group.say("Ann", "@Rollcall hello")
        before = group.model.requests[-1].offer
        await group.say("Ann", "@Rollcall hello")
        assert "sonar" not in offered(group)
        found = group.model.requests[-1].messages[-1].content
        assert "sonar" not in found
        await group.say("Ann", "/use sonar")
        group.model.says("Hi.", call("find_functions", query="listens whales"), "Hm.")
        await group.say("Ann", "@Rollcall hello")
        assert "sonar" in offered(group)
        after = group.model.requests[-1].offer
        assert before is not None
        assert after is not None
        # The beginning of the request is unchanged, byte for byte.
        assert [one for one in after.functions if one.name != "sonar"][:2] == list(before.functions[:2])
        await group.say("Ann", "@Rollcall hello")
        assert "sonar" in group.model.requests[-1].messages[-1].content


@pytest.mark.requirement("C17", "D28")
@over_each_protocol
async def test_a_group_speaks_to_the_model_only_while_it_is_at_hand() -> None:
    source = Grouped([ToolGroup("deep", "The sea", ("sonar",), system_prompt="Whales sing below 100 Hz.")])
    async with a_group([sonar().spec], sources=[source]) as group:
        group.model.says("Hi.", "Hi.", "Hi.")
        await group.say("Ann", "@Rollcall hello")
        before = group.model.requests[-1].messages[0].content
        assert "Whales" not in before
        await group.say("Ann", "@deep hello")
        during = group.model.requests[-1].messages[0].content
        assert during.startswith(before)
        assert "Whales sing below 100 Hz." in during
        await group.say("Ann", "/unuse deep")
        await group.say("Ann", "@Rollcall hello")
        assert group.model.requests[-1].messages[0].content == before


@pytest.mark.requirement("B9", "B10")
async def test_a_model_can_ask_what_is_at_hand_and_how_it_is_called() -> None:
    async with a_group([sonar().spec, Recorder("radar", activation="on_request").spec]) as group:
        await group.say("Ann", "@sonar")
        group.model.says(call("list_tools"), call("list_tools", name="sonar"), "So it is.")
        await group.say("Ann", "@Rollcall which tools are at hand")
        results = [one.content for one in group.model.requests[-1].messages if one.role == "tool"]
        listed, shown = (orjson.loads(one)["result"] for one in results)
        assert [one["name"] for one in listed["at_hand"]] == ["sonar"]
        assert [one["name"] for one in listed["on_request"]] == ["radar"]
        assert list(shown["parameters"]["properties"]) == ["city"]


async def test_help_names_what_can_be_taken_and_explains_it() -> None:
    async with a_group([sonar().spec]) as group:
        assert "• More: @sonar" in (await group.say("Ann", "/help"))[0]
        [text] = await group.say("Ann", "/help more")
        assert EN.say("help.on_request", names="@sonar") in text
        assert "• sonar" not in text
        assert "Does sonar." in (await group.say("Ann", "/help sonar"))[0]
        await group.say("Ann", "@sonar")
        [text] = await group.say("Ann", "/help")
        assert "@sonar" not in text
        assert "sonar" in text


# -- functions that appear and disappear


async def test_names_of_what_is_gone_are_kept_and_do_nothing(tmp_path: Path) -> None:
    source = Grouped([ToolGroup("deep", "The sea", ("sonar", "lost"))])
    async with a_group([sonar().spec], sources=[source], home=tmp_path) as group:
        await group.say("Ann", "/use deep sonar")
    async with a_group(home=tmp_path) as group:
        group.model.says("Hi.")
        assert await group.say("Ann", "@Rollcall hello") == ["Hi."]
        assert EN.say("tools.gone", name="deep") in (await group.say("Ann", "/tools"))[0]
        assert await group.say("Ann", "@deep hello") == []
        assert await group.say("Ann", "/unuse deep") == ["No longer in use in this chat: deep."]
    async with a_group([sonar().spec], home=tmp_path) as group:
        group.model.says("Hi.")
        await group.say("Ann", "@Rollcall hello")
        assert "sonar" in offered(group)


async def test_a_group_may_be_taken_before_its_functions_are_there() -> None:
    source = Grouped([ToolGroup("deep", "The sea", ("sonar",))])
    async with a_group(sources=[source]) as group:
        assert await group.say("Ann", "@deep") == ["Now in use in this chat: deep."]
        assert source.publish is not None
        source.publish(Snapshot((sonar().spec,), tuple(source.groups)))
        group.model.says("Hi.")
        await group.say("Ann", "@Rollcall hello")
        assert "sonar" in offered(group)


async def test_functions_that_name_a_group_make_one() -> None:
    specs = [sonar(groups=["deep"]).spec, Recorder("radar", activation="on_request", groups=["deep"]).spec]
    async with a_group(specs) as group:
        group.model.says("Hi.")
        await group.say("Ann", "@deep hello")
        assert {"sonar", "radar"} <= set(offered(group))


async def test_what_another_process_puts_to_hand_is_noticed() -> None:
    async with a_group([sonar().spec]) as group:
        write = chat_settings.activate(group.chat.key, "sonar", "cli:main:operator", 1)
        await group.daemon.store.commit([write, audit.touch("activations")])
        await group.daemon.housekeeping.notice_changes()
        group.model.says("Hi.")
        await group.say("Ann", "@Rollcall hello")
        assert "sonar" in offered(group)


async def test_a_function_that_is_off_or_for_others_stays_so_at_hand() -> None:
    settings = {"chats": {"allow": ["*"]}, "functions": {"radar": {"enabled": False}}}
    specs = [sonar(roles="admin").spec, Recorder("radar", activation="on_request", groups=["deep"]).spec]
    async with a_group(specs, settings=settings) as group:
        group.model.says("Hi.", "Hi.")
        await group.say("Bob", "/use sonar", role=Role.ADMIN)
        await group.say("Ann", "@Rollcall hello")
        assert not {"sonar", "radar"} & set(offered(group))
        await group.say("Bob", "@Rollcall hello", role=Role.ADMIN)
        assert "sonar" in offered(group)
