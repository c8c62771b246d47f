"""A call of each built-in function, with the state that it needs, and how to make it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from bot.testing import ACCOUNT, PLATFORM, Group, a_group, call
from function_calls.filters.call import Invocation, Proceed
from function_calls.spec import FunctionResult, ToolError
from services.clock import VirtualClock
from services.refs import ChatRef, ErrorCode, Role
from services.web.http import Method, WebAnswer, WebClient, WebLimits
from tests.conftest import REPOSITORY
from tests.fakes.dictionaries import DICTIONARY_PATH, english_answer
from tests.fakes.feeds import RSS_PATH, feed_pages
from tests.fakes.kept import last_reason
from tests.fakes.open_meteo import open_meteo_pages
from tests.fakes.searchers import SEARXNG_PATH, searxng_answer
from tests.fakes.web_server import Page, WebServer

ALONE = ChatRef(PLATFORM, ACCOUNT, "ann")


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a function, as a command and by a model."""

    command: str = ""
    """The command with its arguments, without the slash; empty if the function has none."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """The same arguments as a model gives them."""
    before: tuple[str, ...] = ()
    """Messages of the same member before, or that Tom says hello."""
    by_model: bool = True
    private: bool = False
    """The call is made in a private chat."""
    error: ErrorCode | None = None
    """The expected error, for functions that need a state which a single chat cannot have."""
    writes: Sequence[str] = ()
    """What the model writes for the function itself."""

    def elsewhere(self) -> Case:
        """The same call in a group instead of a private chat, or the other way round."""
        return replace(self, private=not self.private)


_ARTICLE = f"<html><body><article><h1>Tall bridge</h1><p>{'It is 343 metres high. ' * 20}</p></article></body></html>"
_TOM = "Tom says hello"
_EXPENSE = "/expense 30 pizza"
_POLL = "/poll Lunch? | Pizza | Soup"
_REMINDER = "/remind me to call Tom tomorrow at 9:00"
_SCHEDULE = "/schedule every day at 8:00 /roll"
_SIGNUP = "/signup Pizza night"
_TODO = "/todo add buy milk"

CASES: dict[str, Case] = {
    "begin_again": Case("begin again", by_model=False),
    "calculate": Case("calc 17 * 3", {"expression": "17 * 3"}),
    "unit_convert": Case("convert 3 km miles", {"value": "3", "from_unit": "km", "to_unit": "miles"}),
    "why": Case("why", before=("/roll",)),
    "id": Case("id", by_model=False),
    "stop": Case("stop", by_model=False),
    "settings": Case("settings", by_model=False),
    "roll_dice": Case("roll 2d6", {"dice": "2d6"}),
    "flip_coin": Case("flip"),
    "pick_one": Case("pick tea, coffee", {"options": ["tea", "coffee"]}),
    "help": Case("help roll", {"topic": "roll"}),
    "clear_messages": Case("clearmessages"),
    "notes": Case("notes", by_model=False),
    "notes_clear": Case("notes clear", by_model=False),
    "link": Case("link", by_model=False, private=True),
    "link_accept": Case("link accept ABCDEF", by_model=False, private=True, error=ErrorCode.REFUSED),
    "link_reject": Case("link reject ABCDEF", by_model=False, private=True, error=ErrorCode.REFUSED),
    "unlink": Case("unlink", by_model=False, private=True),
    "remember": Case("remember I like tea", {"fact": "I like tea"}),
    "memory": Case("memory", before=("/remember I like tea",)),
    "memory_forget": Case("memory forget tea", {"note": "tea"}, before=("/remember I like tea",)),
    "mute": Case("mute"),
    "unmute": Case("unmute"),
    "news": Case("news"),
    "knowledge_search": Case("kb compost", {"query": "compost"}),
    "use_tools": Case("use", by_model=False),
    "put_away_tools": Case("unuse", by_model=False),
    "list_tools": Case("tools"),
    "poll_create": Case("poll Lunch? | Pizza | Soup", {"question": "Lunch?", "options": ["Pizza", "Soup"]}),
    "poll_vote": Case("vote Soup", {"option": "Soup"}, before=(_POLL,)),
    "poll_results": Case("results", before=(_POLL,)),
    "poll_close": Case("poll close", before=(_POLL,)),
    "reminder_list": Case("reminders", before=(_REMINDER,)),
    "reminder_change": Case("reminder change 1 when=10:00", {"which": "1", "when": "10:00"}, before=(_REMINDER,)),
    "reminder_delete": Case("reminder delete 1", {"which": "1"}, before=(_REMINDER,)),
    "reminder_delete_all": Case("reminder clear", before=(_REMINDER,)),
    "reminder_snooze": Case("snooze", before=(_REMINDER,), error=ErrorCode.NOT_FOUND),
    "reminder_done": Case("reminder done 1", {"which": "1"}, before=(_REMINDER,), by_model=False),
    "reminder_create": Case("remind me to call Tom tomorrow at 9:00", {"text": "call Tom", "when": "tomorrow at 9:00"}),
    "roles": Case("roles", by_model=False),
    "members": Case("members", before=("/roll",)),
    "grants": Case("grants", by_model=False),
    "grants_revoke": Case("grants revoke ABCD", by_model=False, error=ErrorCode.NOT_FOUND),
    "schedule": Case("schedule every day at 8:00 /roll", by_model=False),
    "schedule_create": Case(arguments={"when": "every day at 8:00", "function": "roll_dice"}),
    "schedule_list": Case("schedule list", before=(_SCHEDULE,)),
    "schedule_pause": Case("schedule pause 1", {"number": 1}, before=(_SCHEDULE,)),
    "schedule_resume": Case("schedule resume 1", {"number": 1}, before=(_SCHEDULE, "/schedule pause 1")),
    "schedule_remove": Case("schedule remove 1", {"number": 1}, before=(_SCHEDULE,)),
    "search": Case("search tall bridge", {"query": "tall bridge"}, by_model=False),
    "summary": Case("summary", before=("/roll",), writes=("They rolled dice.",)),
    "time_in": Case("time Paris", {"place": "Paris"}),
    "date_in": Case("date Paris", {"place": "Paris"}),
    "time_convert": Case("convert_time 9:00 Paris Tokyo", {"time": "9:00", "from_place": "Paris", "to_place": "Tokyo"}),
    "timezone": Case("timezone Paris", {"place": "Paris"}),
    "todo_add": Case("todo add buy milk", {"text": "buy milk"}),
    "todo_list": Case("todo", before=(_TODO,)),
    "todo_done": Case("todo done 1", {"item": "1"}, before=(_TODO,)),
    "todo_update": Case("todo update 1 buy tea", {"number": 1, "text": "buy tea"}, before=(_TODO,)),
    "todo_remove": Case("todo remove 1", {"item": "1"}, before=(_TODO,)),
    "usage": Case("usage"),
    "catchup": Case("catchup", before=("/roll",), writes=("They rolled dice.",)),
    "history": Case("history milk", {"words": "milk"}, before=("@Rollcall remember that I buy milk",)),
    "roast": Case("roast Ann", {"member": "Ann"}, before=("/roast on",), writes=("Ann is late again.",)),
    "expense_add": Case("expense 30 pizza", {"what": "pizza", "amount": 30}),
    "expense_list": Case("expenses", before=(_EXPENSE,)),
    "expense_settle": Case("settle", before=(_TOM, _EXPENSE)),
    "expense_paid": Case("settle paid 1", {"transfer": "1"}, before=(_TOM, _EXPENSE)),
    "expense_delete": Case("expense delete 1", {"number": 1}, before=(_EXPENSE,)),
    "shop": Case("shop milk, 6 eggs", {"items": "milk, 6 eggs"}),
    "shop_done": Case("bought milk", {"items": "milk"}, before=("/shop milk",)),
    "shop_remove": Case("shop remove milk", {"items": "milk"}, before=("/shop milk",)),
    "signup_create": Case("signup Pizza night", {"title": "Pizza night"}),
    "signup_join": Case("signup join", before=(_SIGNUP,)),
    "signup_leave": Case("signup leave", before=(_SIGNUP, "/signup join")),
    "signup_list": Case("signups", before=(_SIGNUP,)),
    "signup_close": Case("signup close", before=(_SIGNUP,)),
    "welcome": Case("welcome Hello {new_member}", by_model=False),
    "goodbye": Case("goodbye Bye {new_member}", by_model=False),
    "trigger": Case('trigger "pizza" → Who wants some?', by_model=False),
    "trigger_delete": Case("trigger delete pizza", by_model=False, before=('/trigger "pizza" → Who?',)),
    "persona": Case("persona Speak like a pirate", by_model=False),
    "forward": Case("forward", by_model=False),
    "forward_accept": Case("forward accept ABCDEF", by_model=False, error=ErrorCode.NOT_FOUND),
    "forward_remove": Case("forward remove ABCDEF", by_model=False, error=ErrorCode.NOT_FOUND),
    "kick": Case("kick Tom", {"member": "Tom"}, before=(_TOM,)),
    "ban": Case("ban Tom", {"member": "Tom"}, before=(_TOM,)),
    "silence": Case("silence Tom", {"member": "Tom"}, before=(_TOM,)),
    "pin": Case("pin", error=ErrorCode.BAD_ARGUMENTS),
    "invite": Case("invite"),
    "forget_me": Case("forget me", by_model=False, before=("/todo add milk",)),
    "export_me": Case("export me", by_model=False, before=("/todo add milk",)),
    "opt_out": Case("optout", by_model=False),
    "opt_in": Case("optin", by_model=False),
    "define": Case("dictionary test", {"word": "test"}),
    "draw": Case("draw a cat", {"picture": "a cat"}, error=ErrorCode.ENVIRONMENT),
    "read": Case("read https://bridges.example/tall", {"url": "https://bridges.example/tall"}),
    "research": Case(
        "research how tall the bridge is",
        {"question": "how tall the bridge is"},
        writes=("1. tall bridge", "It is 343 metres high [1]."),
    ),
    "translate": Case(
        "translate French good morning", {"text": "good morning", "language": "French"}, writes=("Bonjour.",)
    ),
    "chat_usage": Case("usage all", by_model=False),
    "think": Case(
        "think why is the sky blue", {"question": "why is the sky blue"}, by_model=False, writes=("Light scatters.",)
    ),
    "weather": Case("weather Paris", {"city": "Paris"}),
}


@dataclass(slots=True)
class Runs:
    """Call filter that records the results of one function."""

    name: str = ""
    results: list[FunctionResult] = field(default_factory=list)

    async def __call__(self, invocation: Invocation, proceed: Proceed) -> FunctionResult:
        try:
            result = await proceed(invocation)
        except ToolError as error:
            result = FunctionResult.fail(error.code, error.text)
        if invocation.spec.name == self.name:
            self.results.append(result)
        return result


class LocalWeb(WebClient):
    """Web client for which all hosts are one local server."""

    def __init__(self, server: WebServer) -> None:
        super().__init__(WebLimits(timeout_seconds=10.0), allow_loopback=True)
        self._server = server

    async def get(
        self, url: str, *, query: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> WebAnswer:
        return await super().get(self._here(url), query=query, headers=headers)

    async def request(self, method: Method, url: str, **options: Any) -> WebAnswer:
        return replace(await super().request(method, self._here(url), **options), url=url)

    def _here(self, url: str) -> str:
        return self._server.url(urlsplit(url).path)


@asynccontextmanager
async def a_chat(case: Case, runs: Runs) -> AsyncIterator[Group]:
    """A chat in the state that the case describes; every source outside is a local server."""
    pages = {
        **feed_pages(),
        **open_meteo_pages(),
        SEARXNG_PATH: Page.json(searxng_answer()),
        f"{DICTIONARY_PATH}/test": Page.json(english_answer()),
        "/tall": Page(_ARTICLE.encode(), headers={"Content-Type": "text/html"}),
    }
    async with WebServer(pages) as server:
        settings: dict[str, Any] = {
            "news": {"feeds": [{"name": "World", "url": server.url(RSS_PATH)}]},
            "knowledge": {"bases": {"club": str(REPOSITORY / "benchmarks" / "knowledge")}},
            "search": {"kind": "searxng", "url": server.url(""), "private_network": True},
        }
        web = LocalWeb(server)
        async with a_group(settings=settings, web=web, filters=[runs], clock=VirtualClock()) as group:
            for text in case.before:
                if text == _TOM:
                    await say(group, case, "hello", "Tom", Role.MEMBER)
                else:
                    assert await say(group, case, text), text
            runs.results.clear()
            yield group


async def say(group: Group, case: Case, text: str, who: str = "Ann", role: Role = Role.OWNER) -> list[str]:
    """What the bot answers to `text` in a place where the function of the case may be called."""
    if case.private:
        return await group.say(who, text, role=role, chat=ALONE, is_group=False)
    return await group.say(who, text, role=role)


async def confirmed(group: Group, case: Case, said: list[str], **who: Any) -> list[str]:
    """`said`, or what the bot answers to yes if it has asked a question."""
    asked = said and (await last_reason(group))[0] == "asked"
    return await say(group, case, "@Rollcall yes", **who) if asked else said


async def by_command(group: Group, case: Case, **who: Any) -> list[str]:
    """What the bot answers to the command; a question to confirm it is answered with yes."""
    group.model.says(*case.writes)
    return await confirmed(group, case, await say(group, case, f"/{case.command}", **who), **who)


async def by_model(group: Group, case: Case, name: str, arguments: dict[str, Any], **who: Any) -> list[str]:
    """What the bot answers if the model calls the function; a question for approval is answered with yes."""
    group.model.says(call(name, **arguments), *case.writes, "That is what I found.")
    request = f"@Rollcall please: {case.command} {' '.join(map(str, arguments.values()))}"
    return await confirmed(group, case, await say(group, case, request, **who), **who)
