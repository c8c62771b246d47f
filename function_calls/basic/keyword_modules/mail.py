"""Mail that scripts send: SEND MAIL, BEGIN MAIL for a longer one, and messages from template files."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keyword_modules.records import template_text
from function_calls.basic.keyword_modules.talk import member_called
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.session import count_up, seconds_left, translated_error
from function_calls.basic.run.web import loaded
from function_calls.basic.values import text_of
from function_calls.spec import Message
from services.chats.members import KnownMembers
from services.clock import Clock
from services.mail import Letter, Mailer, MailError, MailFile, addresses_in
from services.patterns import visible_line
from services.refs import ErrorCode
from services.sandbox.workspace import Workspaces
from services.scripts.files import LocalScriptFiles

_SENT = "mail.sent"
_TOUCHES = ("reaches_out", "sends_out", "reads_outside")
_MOST_IN_A_RUN = 5
_MOST_FILES = 10
_MOST_CHARS = 100_000
_SUBJECT = "subject:"
_CODES = {
    ErrorCode.REFUSED: RunCode.NOT_ALLOWED,
    ErrorCode.BAD_ARGUMENTS: RunCode.BAD_VALUE,
    ErrorCode.UNKNOWN_OUTCOME: RunCode.UNKNOWN_OUTCOME,
}


@basic_keyword(
    "SEND MAIL {to}, {subject}, {body} [, {files}]",
    "SEND EMAIL {to}, {subject}, {body} [, {files}]",
    "SEND MAIL {to}, {subject}",
    "SEND EMAIL {to}, {subject}",
    effect="once",
    touches=_TOUCHES,
)
async def send_mail(
    run: ScriptRun,
    to: Value,
    subject: Value,
    body: Value = None,
    files: Value = None,
    *,
    mailer: Mailer,
    workspaces: Workspaces,
    clock: Clock,
) -> None:
    """Send mail to one or several addresses, optionally with files of this chat. A single text after the
    recipient is subject and text."""
    letter = Letter(
        _addresses(run, to),
        text_of(subject),
        _body(run, text_of(subject if body is None else body)),
        await _files(run, workspaces, files),
    )
    await _send(run, letter, mailer, clock)


@basic_keyword("BEGIN MAIL {to} {letter:block}", effect="once", touches=_TOUCHES)
async def mail_block(run: ScriptRun, to: Value, letter: Value, *, mailer: Mailer, clock: Clock) -> None:
    """Send mail written in the block: a line `Subject: …`, then the text, up to END MAIL."""
    subject, body = _subject_and_body(run, text_of(letter))
    await _send(run, Letter(_addresses(run, to), subject, _body(run, body)), mailer, clock)


@basic_keyword(
    "SEND TEMPLATE TO {to}, {template} [, {values}]",
    "SEND TEMPLATE {to}, {template} [, {values}]",
    "SEND TEMPLATE {template}, {channel}, {to}, {values}",
    effect="once",
    touches=_TOUCHES,
)
async def send_template(
    run: ScriptRun,
    to: Value,
    template: Value,
    values: Value = None,
    channel: Value = None,
    *,
    files: LocalScriptFiles,
    members: KnownMembers,
    mailer: Mailer,
    clock: Clock,
) -> Value:
    """Send a template file next to the script with values in place of `{{name}}`: as mail to an address, with a first
    line `Subject: …`, else as a message to a member of this chat. Returns a list with a map: `success` and `to`."""
    text = _body(run, await template_text(run, files, text_of(template), values or {}))
    if "@" in text_of(to).strip("@"):
        subject, body = _subject_and_body(run, text)
        await _send(run, Letter(_addresses(run, to), subject, _body(run, body)), mailer, clock)
    else:
        run.say(Message(text, to=await member_called(run, text_of(to).strip(), members)))
    return [{"success": True, "to": to}]


async def _send(run: ScriptRun, letter: Letter, mailer: Mailer, clock: Clock) -> None:
    left = seconds_left(run, clock)
    number = count_up(run, _SENT, _MOST_IN_A_RUN, "mail.too_many")
    try:
        await mailer.send(letter, f"{run.call.key}/{number}", left)
    except MailError as error:
        raise _fault(run, error) from None


def _fault(run: ScriptRun, error: MailError) -> RunError:
    """The mail error as a runtime error, in our words only."""
    text = run.call.say(f"basic.mail.problem.{error.problem}", status=error.status, **error.values)
    if error.may_pass:
        text = f"{text} {run.call.say('basic.mail.later')}"
    return RunError(_CODES.get(error.code, RunCode.UNAVAILABLE), text)


def _addresses(run: ScriptRun, to: Value) -> tuple[str, ...]:
    try:
        return addresses_in(to)
    except ValueError as error:
        raise translated_error(run, RunCode.BAD_VALUE, "mail.no_address", text=visible_line(str(error))) from None


def _body(run: ScriptRun, text: str) -> str:
    if len(text) > _MOST_CHARS:
        raise translated_error(run, RunCode.BAD_VALUE, "mail.long_text", most=_MOST_CHARS)
    return text


async def _files(run: ScriptRun, workspaces: Workspaces, files: Value) -> tuple[MailFile, ...]:
    wanted = files if isinstance(files, list) else [] if files in (None, "") else [files]
    if len(wanted) > _MOST_FILES:
        raise translated_error(run, RunCode.BAD_VALUE, "mail.many_files", most=_MOST_FILES)
    found = [await loaded(run, workspaces, one) for one in wanted]
    return tuple(MailFile(one.name, one.media_type, one.content) for one in found)


def _subject_and_body(run: ScriptRun, letter: str) -> tuple[str, str]:
    """Split at the first line, which must be `Subject: …`; an empty line after it is dropped. Raises RunError without a
    subject."""
    lines = letter.strip("\r\n").splitlines()
    first = lines[0].strip() if lines else ""
    if not first.lower().startswith(_SUBJECT):
        raise translated_error(run, RunCode.BAD_VALUE, "mail.no_subject")
    rest = lines[1:]
    if rest and not rest[0].strip():
        rest = rest[1:]
    return first[len(_SUBJECT) :].strip(), "\n".join(rest)
