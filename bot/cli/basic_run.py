"""`rollcall basic run FILE`: run a script without a chat on a temporary database."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import httpx2

from bot.checks.scratch import scratch_daemon
from bot.cli.options import add_config, chat_ref, member_ref, on_settings
from bot.daemon import Daemon
from bot.overrides import Overrides
from config.sections.basic import BasicSource
from config.sections.bots import ChatSettings
from config.settings import Settings, SourcesSettings
from function_calls.basic import STOPPED_AT
from function_calls.call import CallRequest
from function_calls.call import Path as CallPath
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.outcome import asking_messages
from function_calls.questions.open_questions import Answered
from function_calls.questions.resume import read_answer
from function_calls.schema.commands import value_of
from function_calls.schema.definition import DefinitionError
from function_calls.spec import (
    ApprovalQuestion,
    Approved,
    ArgumentQuestion,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Message,
    OfferedTo,
    Question,
    Resumed,
    ResumedKind,
)
from function_calls.turn import Turn, TurnInput
from services.clock import Clock, SystemClock
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, Role
from services.store.chats import script_data
from services.store.port import StoreError
from services.web.addresses import WebError
from services.web.http import WebClient

_TURN_SECONDS = 600.0

NextAnswer = Callable[[], Awaitable[str | None]]
"""Returns the member's answer to the last question; None for no answer."""


@dataclass(frozen=True, slots=True)
class Trying:
    """Member and chat of the trial."""

    member: MemberRef
    name: str
    role: Role
    chat: ChatRef
    is_group: bool = True


class Said(NamedTuple):
    """A message of the run; the last one before a question has the question."""

    message: Message
    is_question: bool


class Answer(NamedTuple):
    """The member's answer."""

    text: str


class Ended(NamedTuple):
    """The run has ended, or waits for an answer that will not come."""

    result: FunctionResult


Step = Said | Answer | Ended


class ScriptTrial:
    """Runs functions of a daemon interactively."""

    def __init__(self, daemon: Daemon, clock: Clock, trying: Trying) -> None:
        self._daemon = daemon
        self._clock = clock
        self._trying = trying
        self._turns = 0

    async def steps(self, spec: FunctionSpec, arguments: JsonObject, next_answer: NextAnswer) -> AsyncIterator[Step]:
        """The events of the run in order; the last one is Ended."""
        texts = self._daemon.chats.profile(self._trying.chat).texts
        context = self._context("")
        # The start script of a chat is not a command.
        path = CallPath.COMMAND if OfferedTo.COMMAND in spec.access.offered_to else CallPath.NESTED
        result = await self._run(spec.name, arguments, path, context)
        while (question := result.question) is not None:
            messages = asking_messages(result, texts)
            for message in messages[:-1]:
                yield Said(message, is_question=False)
            yield Said(messages[-1], is_question=True)
            said = await next_answer()
            if said is None:
                break
            yield Answer(said)
            answered = read_answer(question, said, texts)
            if answered.kind is Answered.UNRELATED:
                # As in a chat: an unrelated answer leaves the question open.
                result = FunctionResult(question=question)
                continue
            result = await self._goes_on(question, answered.kind, answered.value, self._context(said))
        else:
            for message in result.for_chat():
                yield Said(message, is_question=False)
        yield Ended(result)

    async def _goes_on(self, question: Question, kind: Answered, value: str, context: MessageContext) -> FunctionResult:
        """Result of the run that the question interrupted, resumed with the answer; without a saved run it starts
        again, or is dropped after a no."""
        before = question.saved_run
        says_no = kind in (Answered.NO, Answered.CANCELLED)
        if before is None:
            if says_no:
                return FunctionResult(messages=(Message(self._say("questions.dropped")),))
            arguments = dict(question.arguments)
            if isinstance(question, ArgumentQuestion):
                arguments[question.field] = value
            return await self._run(
                question.function, arguments, CallPath.COMMAND, context, question=question, confirmed=True
            )
        ended: ResumedKind = "cancelled" if says_no else "answered"
        ends = replace(before, answer="" if says_no else value, kind=ended)
        result = await self._run(question.function, question.arguments, CallPath.COMMAND, context, ends, question)
        if says_no and not result.messages and result.error is None:
            return FunctionResult(messages=(Message(self._say("questions.dropped")),))
        return result

    async def _run(
        self,
        name: str,
        arguments: JsonObject,
        path: CallPath,
        context: MessageContext,
        resumed: Resumed | None = None,
        question: Question | None = None,
        *,
        confirmed: bool = False,
    ) -> FunctionResult:
        daemon, chat = self._daemon, context.chat
        self._turns += 1
        given = TurnInput(
            id=f"trial-{self._turns}",
            functions=daemon.registry.of(context.bot),
            profile=lambda: daemon.chats.profile(chat),
        )
        turn = Turn(given, self._clock.monotonic() + _TURN_SECONDS)
        if question is not None:
            allowed = question.allowed if isinstance(question, InputQuestion) else ""
            digest = question.terms.digest if isinstance(question, ApprovalQuestion) else allowed
            turn.memory.approved = Approved(digest, context.sender, always=False) if digest else None
        key = turn.next_key()
        if resumed is not None:
            turn.memory.resume(key, resumed)
        return await daemon.invoker.invoke(
            CallRequest(context, name, arguments, turn, path, key=key, confirmed=confirmed)
        )

    def _say(self, key: str) -> str:
        return self._daemon.chats.profile(self._trying.chat).texts.say(key)

    def _context(self, text: str) -> MessageContext:
        trying = self._trying
        return MessageContext(
            key=MessageKey(trying.chat, uuid.uuid4().hex),
            kind=Kind.MESSAGE,
            chat=trying.chat,
            is_group=trying.is_group,
            sender=Sender(trying.member, trying.name, trying.role),
            text=text,
            sent_at=self._clock.now(),
            mentions_bot=True,
            bot=self._daemon.chats.of(trying.chat).settings.bot,
        )


def no_web(why: str) -> WebClient:
    """A web client that rejects every request with WebError; `why` follows the host's name in its text."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        raise WebError(ErrorCode.REFUSED, f"{host} {why}")

    return WebClient(resolve=resolve, transport=lambda: _Refusing(why))


class _Refusing(httpx2.AsyncBaseTransport):
    """Transport that rejects every request."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise WebError(ErrorCode.REFUSED, f"{request.url.host} {self._why}")


_MOST_SHOWN_CHARS = 500
_STAYS_OFF = "was not contacted: network access needs --network"


def add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `rollcall basic run`, with its options, to `commands`."""
    parser = commands.add_parser(
        "run",
        help="run a script without a chat",
        description="Run a script and print its messages, questions, stored data and result. It runs on a temporary "
        "database and without the web, a model, mail and custom functions, unless --network is given.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the script")
    parser.add_argument("--arg", action="append", default=[], type=_argument, metavar="NAME=VALUE", help="a parameter")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="TEXT",
        help="answer to the next question; repeat it for several, in order",
    )
    parser.add_argument("--tool", default="", metavar="NAME", help="tool to run if the file has several")
    parser.add_argument(
        "--as", dest="member", type=member_ref, default="cli:main:operator", metavar="MEMBER", help="member who runs it"
    )
    parser.add_argument(
        "--role", default="owner", choices=[role.value for role in Role], help="role of the member (default: owner)"
    )
    parser.add_argument("--chat", type=chat_ref, default="cli:main:terminal", metavar="CHAT", help="chat to run it in")
    parser.add_argument("--network", action="store_true", help="allow the web, mail, the model and custom functions")
    add_config(parser)
    parser.set_defaults(run=run_script)


@on_settings
def run_script(options: argparse.Namespace, settings: Settings) -> int:
    """Print the events. 0: the script ended; 1: it failed, or waits for an answer; 2: wrong usage."""
    if not options.file.is_file():
        return _usage(f"no such file: {options.file}")
    try:
        return asyncio.run(_run(_only_the_script(settings, options), options))
    except (StoreError, DefinitionError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


async def _run(settings: Settings, options: argparse.Namespace) -> int:
    clock = SystemClock()
    given = Overrides(clock=clock) if options.network else Overrides(clock=clock, web=no_web(_STAYS_OFF))
    async with scratch_daemon(settings, given) as daemon:
        bot = daemon.chats.of(options.chat).settings.bot
        specs = _of_file(daemon.registry.of(bot).specs, options.file)
        for fault in daemon.functions.faults:
            print(fault, file=sys.stderr)
        if not specs:
            return 1
        spec = next((one for one in specs if options.tool in ("", one.name)), None)
        if spec is None or (len(specs) > 1 and not options.tool):
            return _usage(
                f"{options.file} has the tools {', '.join(one.name for one in specs)}; select one with --tool"
            )
        unknown = [name for name, _ in options.arg if name not in spec.parameters["properties"]]
        if unknown:
            known = ", ".join(spec.parameters["properties"]) or "none"
            return _usage(f"{spec.name} has no parameter {unknown[0]!r}; its parameters: {known}")
        member = options.member
        trying = Trying(member, member.native, Role(options.role), options.chat)
        result = await _tried(ScriptTrial(daemon, clock, trying), spec, options)
        await _show_kept(daemon)
        return _show_end(result)


async def _tried(trial: ScriptTrial, spec: FunctionSpec, options: argparse.Namespace) -> FunctionResult:
    """Run the function and return its result; its messages and answers are printed. Questions are answered from
    `--answer`, then from the terminal, if there is one; otherwise the result contains the question."""
    answers: Iterator[str] = iter(options.answer)

    async def next_answer() -> str | None:
        answer = next(answers, None)
        if answer is None and sys.stdin.isatty():
            try:
                return await asyncio.to_thread(input, "> ")
            except EOFError:
                return None
        return answer

    arguments: JsonObject = {name: value_of(spec.parameters["properties"][name], value) for name, value in options.arg}
    async for step in trial.steps(spec, arguments, next_answer):
        if isinstance(step, Said):
            _show_message(step.message, is_question=step.is_question)
        elif isinstance(step, Answer):
            print(f"ANSWER {step.text}")
        else:
            return step.result
    raise AssertionError("a trial ends with its result")


def _show_message(message: Message, *, is_question: bool) -> None:
    kind = "ASK" if is_question else "TALK"
    to = f" (to {message.to.key})" if message.to is not None else ""
    choices = f"  [{' | '.join(one.label for one in message.choices)}]" if message.choices else ""
    print(f"{kind}{to} {message.text}{choices}")


async def _show_kept(daemon: Daemon) -> None:
    for row in await daemon.store.read(script_data.ALL_ROWS):
        print(f"SAVED {row['table_name']}: {_short(row['fields'])}")
    for row in await daemon.store.read(script_data.ALL_VALUES):
        print(f"REMEMBERED {row['name']}: {_short(row['value'])}")


def _show_end(result: FunctionResult) -> int:
    if result.error is not None:
        where = result.metadata.get(STOPPED_AT)
        if where is not None or result.question is not None:
            # Other errors were reported in the chat.
            print(f"STOPPED {where or result.error.text}")
        return 1
    if result.question is not None:
        print("WAITING for an answer; give it with --answer TEXT")
        return 1
    if result.data is not None:
        print(f"RESULT {json.dumps(result.data, ensure_ascii=False, default=str)}")
    return 0


def _only_the_script(settings: Settings, options: argparse.Namespace) -> Settings:
    """The settings with this script only, and without access to others unless `--network` is set."""
    named = next((one for one in settings.sources.basic if _lies_in(options.file, one)), BasicSource(path=options.file))
    source = named.model_copy(update={"path": options.file, "bot": _bot_of(options.file) or named.bot})
    if source.bot not in settings.bots:
        source = source.model_copy(update={"bot": "default"})
    own_chat = ChatSettings(bot=source.bot)
    chats = settings.chats.model_copy(
        update={"allow": ("*",), "settings": {**settings.chats.settings, options.chat.key: own_chat}}
    )
    if options.network:
        sources = settings.sources.model_copy(update={"basic": (source,)})
        return settings.model_copy(update={"sources": sources, "chats": chats})
    sources = SourcesSettings(basic=(source,), basic_keywords=settings.sources.basic_keywords)
    bare = {name: bot.model_copy(update={"plugins": ()}) for name, bot in settings.bots.items()}
    defaults = Settings()
    return settings.model_copy(
        update={
            "sources": sources,
            "chats": chats,
            "bots": bare,
            "plugins": (),
            "models": (),
            "mcp": defaults.mcp,
            "mail": defaults.mail,
        }
    )


def _lies_in(file: Path, source: BasicSource) -> bool:
    path = source.path
    return path is not None and (path == file or path.resolve() in file.resolve().parents)


def _bot_of(file: Path) -> str:
    """The script's bot according to its folder, `<bot>.gbai`."""
    return next((one.stem.lower() for one in file.resolve().parents if one.suffix == ".gbai"), "")


def _of_file(specs: Sequence[FunctionSpec], file: Path) -> list[FunctionSpec]:
    # Source paths may be relative to the working folder, whatever form `file` has.
    wanted = file.resolve()
    return [one for one in specs if Path(one.origin.source.rpartition(":")[0]).resolve() == wanted]


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN_CHARS else f"{text[:_MOST_SHOWN_CHARS]}…"


def _argument(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not in the form name=value")
    return name.strip(), value


def _usage(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 2
