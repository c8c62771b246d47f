"""Texts about steps, in full detail for the model and shortened for the chat."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from config.texts import Phrases
from function_calls.command_tools.request import Output, Problem, StepFacts
from function_calls.command_tools.word_templates import Wording, display_text
from function_calls.result import plain
from function_calls.spec import FunctionResult, Message
from services.patterns import visible_line
from services.refs import ErrorCode, JsonObject, JsonValue

CallHook = Callable[..., Awaitable[Any]]
"""Calls a callable of the tool."""


class StepTexts(NamedTuple):
    """Custom texts about a step, or None for the default."""

    model: str | None = None
    chat: str | None = None


@dataclass(frozen=True, slots=True)
class StepFailure:
    """A step that failed or was rejected."""

    result: FunctionResult
    """Default result of the tool."""
    model: str = ""
    """Additional text for the model."""
    output: Output | None = None

    @property
    def problem(self) -> Problem:
        """The failure in the form for callables."""
        error = self.result.error
        return Problem(error.code.value if error else "failed", error.text if error else "", self.output)


async def step_texts(
    wording: Wording | None, values: Mapping[str, Any], call: CallHook, arguments: Sequence[Any]
) -> StepTexts:
    """The tool's custom texts for a step. Raises TypeError if its callable returns another type, and any exception of
    `call`."""
    if wording is None:
        return StepTexts()
    if wording.function is None:
        model, chat = wording.model, wording.chat
        return StepTexts(
            None if model is None else display_text(model, values), None if chat is None else display_text(chat, values)
        )
    result = await call(wording.function, *arguments)
    if result is None or isinstance(result, str):
        return StepTexts(result, result)
    if isinstance(result, Mapping) and set(result) <= {"model", "chat"}:
        texts = [result.get("model"), result.get("chat")]
        if all(text is None or isinstance(text, str) for text in texts):
            return StepTexts(*texts)
    raise TypeError("a callable of `output` returns a text, a mapping of `model` and `chat` to texts, or None")


def words_for(step: StepFacts, output: Any, failure: StepFailure | None = None, reason: str = "") -> dict[str, Any]:
    """Variables for texts, in addition to arguments and `env`: `step`, `command`, `reason`, `output`, `error`,
    `stdout`, `stderr`, `exit_code`. The last three are empty texts for an output that is not of a command."""
    ran = failure.output if failure is not None else output
    facts: dict[str, Any] = {"step": step.number, "command": shown(step), "reason": reason}
    facts["output"] = text_for(ran)
    facts["error"] = failure.problem.text if failure is not None else ""
    if isinstance(ran, Output):
        facts |= {"stdout": ran.stdout.strip(), "stderr": ran.stderr.strip(), "exit_code": ran.exit_code}
    return {"stdout": "", "stderr": "", "exit_code": "", **facts}


def shown(step: StepFacts, stdin: str = "") -> str:
    """Displayed form of a step: exactly as it runs, with invisible characters escaped."""
    if not step.argv:
        return visible_line(step.python)
    text = visible_line(shlex.join(step.argv))
    return f"{text} <<< {visible_line(shlex.quote(stdin))}" if stdin else text


def as_code(command: str) -> str:
    """`command` as inline code or a code block, so that chats show it unchanged."""
    if "`" not in command:
        return f"`{command}`"
    # Text that would close the block early is shown as plain text.
    return command if "```" in command or command.endswith("`") else f"```\n{command}\n```"


def text_for(value: Any) -> str:
    """The output of a step as text."""
    if isinstance(value, Output):
        return value.stdout.strip() or value.stderr.strip()
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value, default=str).decode()


WORDS = frozenset(words_for(StepFacts(1), None))
"""Names of these variables."""


def succeeded(
    outputs: Sequence[JsonValue | Output], custom: Sequence[StepTexts], *, has_custom_texts: bool, done: str
) -> FunctionResult:
    """Result of a successful run. `has_custom_texts`: the tool has custom texts. `done`: text for the chat if there
    is nothing else."""
    texts = [one.chat for one in custom if one.chat]
    if not has_custom_texts and not texts and outputs:
        texts.append(text_for(outputs[-1]))
    text = "\n".join(text for text in texts if text.strip())
    *earlier, last = outputs or [None]
    return FunctionResult(messages=(Message(text or done),), data=_facts(earlier, custom, last, has_last=bool(outputs)))


def failed(
    failure: StepFailure, own: StepTexts, outputs: Sequence[JsonValue | Output], texts: Sequence[StepTexts]
) -> FunctionResult:
    """Result of a run that ended with `failure`, with the tool's custom texts if there are any."""
    result = failure.result
    if own.chat:
        result = result.with_error_text(own.chat)
    before = [one.chat for one in texts if one.chat]
    if before and result.error is not None:
        result = replace(result, messages=(Message("\n".join([*before, result.error.text])),))
    model_text = own.model if own.model is not None else failure.model
    facts = _facts(outputs, [*texts, StepTexts(model_text or None)], failure.output)
    return replace(result, data=facts)


def fail(code: ErrorCode, texts: Phrases, key: str, *, model: str = "", **values: object) -> StepFailure:
    """Failure of a step with the text `command_tools.<key>` for members, and `model` for models."""
    return StepFailure(FunctionResult.fail(code, texts.say(f"command_tools.{key}", **values)), model)


def _facts(
    earlier: Sequence[JsonValue | Output],
    texts: Sequence[StepTexts],
    last: JsonValue | Output,
    *,
    has_last: bool = False,
) -> JsonObject | None:
    """Data for the model: output of the last step if it ran, outputs of earlier steps as `earlier`, and the tool's
    custom texts as `message`; None if there are none."""
    model_text = "\n".join(one.model for one in texts if one.model)
    facts: JsonObject = {"message": model_text} if model_text else {}
    if has_last or last is not None:
        facts |= _as_json(last)
    if earlier:
        facts["earlier"] = [_as_json(one) for one in earlier]
    return facts or None


def _as_json(output: JsonValue | Output) -> JsonObject:
    return output.to_json() if isinstance(output, Output) else {"output": plain(output)}
