"""Mail that scripts send: SEND MAIL, and BEGIN MAIL for a longer one."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.scripts.files import loaded
from services.clock import Clock
from services.mail import Mailer, MailError
from services.mail_letters import Letter, MailFile, addresses_in
from services.refs import ErrorCode
from services.workspace import Workspaces

_SENT = "mail.sent"
_TOUCHES = ("reaches_out", "sends_out", "reads_outside")
_MOST_IN_A_RUN = 5
_MOST_FILES = 10
_MOST_CHARS = 100_000
_LEFT_SECONDS = 1.0
_SUBJECT = "subject:"
_CODES = {
    ErrorCode.REFUSED: RunCode.NOT_ALLOWED,
    ErrorCode.BAD_ARGUMENTS: RunCode.BAD_VALUE,
    ErrorCode.UNKNOWN_OUTCOME: RunCode.UNKNOWN_OUTCOME,
}


@basic_keyword(
    "SEND MAIL {to}, {subject}, {body} [, {files}]",
    "SEND EMAIL {to}, {subject}, {body} [, {files}]",
    effect="once",
    touches=_TOUCHES,
)
async def send_mail(
    run: ScriptRun,
    to: Value,
    subject: Value,
    body: Value,
    files: Value = None,
    *,
    mailer: Mailer,
    workspaces: Workspaces,
    clock: Clock,
) -> None:
    """Send mail to one or several addresses, perhaps with files of this chat."""
    letter = Letter(_addresses(to), text_of(subject), _body(text_of(body)), await _files(run, workspaces, files))
    await _send(run, letter, mailer, clock)


@basic_keyword("BEGIN MAIL {to} {letter:block}", effect="once", touches=_TOUCHES)
async def mail_block(run: ScriptRun, to: Value, letter: Value, *, mailer: Mailer, clock: Clock) -> None:
    """Send mail that is written out: a line `Subject: …`, then the text, up to END MAIL."""
    subject, body = _subject_and_body(text_of(letter))
    await _send(run, Letter(_addresses(to), subject, _body(body)), mailer, clock)


async def _send(run: ScriptRun, letter: Letter, mailer: Mailer, clock: Clock) -> None:
    number = int(run.kept.get(_SENT, 0))
    if number >= _MOST_IN_A_RUN:
        raise RunFault(RunCode.NOT_ALLOWED, f"a run sends {_MOST_IN_A_RUN} mails at most")
    left = run.call.deadline - clock.monotonic() - _LEFT_SECONDS
    if left <= 0:
        raise RunFault(RunCode.UNAVAILABLE, "the run has no time left to send mail")
    run.kept[_SENT] = number + 1
    try:
        await mailer.send(letter, f"{run.call.key}/{number}", left)
    except MailError as error:
        raise RunFault(_CODES.get(error.code, RunCode.UNAVAILABLE), str(error)) from None


def _addresses(to: Value) -> tuple[str, ...]:
    try:
        found = addresses_in(to)
    except ValueError as error:
        raise RunFault(RunCode.BAD_VALUE, f"“{error}” is no mail address such as ann@example.com") from None
    if not found:
        raise RunFault(RunCode.BAD_VALUE, "the mail has no recipient")
    return found


def _body(text: str) -> str:
    if len(text) > _MOST_CHARS:
        raise RunFault(RunCode.BAD_VALUE, f"a mail has {_MOST_CHARS} characters at most")
    return text


async def _files(run: ScriptRun, workspaces: Workspaces, files: Value) -> tuple[MailFile, ...]:
    wanted = files if isinstance(files, list) else [] if files in (None, "") else [files]
    if len(wanted) > _MOST_FILES:
        raise RunFault(RunCode.BAD_VALUE, f"a mail takes {_MOST_FILES} files at most")
    found = [await loaded(run, workspaces, one) for one in wanted]
    return tuple(MailFile(one.name, one.media_type, one.content) for one in found)


def _subject_and_body(letter: str) -> tuple[str, str]:
    """The first line that says something is the subject where it begins so; an empty line behind it is none of the
    text."""
    lines = letter.strip("\r\n").splitlines()
    first = lines[0].strip() if lines else ""
    if not first.lower().startswith(_SUBJECT):
        raise RunFault(RunCode.BAD_VALUE, "BEGIN MAIL needs `Subject: …` as its first line")
    rest = lines[1:]
    if rest and not rest[0].strip():
        rest = rest[1:]
    return first[len(_SUBJECT) :].strip(), "\n".join(rest)
