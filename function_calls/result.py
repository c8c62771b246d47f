"""Conversion of a handler's return value into a FunctionResult, and the stored form of results."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

import orjson
from pydantic import BaseModel

from function_calls.context import Attachment, context_from_json, context_to_json
from function_calls.spec import (
    ApprovalQuestion,
    ApprovalTerms,
    ArgumentQuestion,
    Choice,
    ConfirmQuestion,
    FunctionError,
    FunctionResult,
    InputQuestion,
    Message,
    Question,
    Resumed,
)
from services.refs import ChatRef, ErrorCode, JsonObject, JsonValue, MemberRef, Role


def question_to_json(question: Question) -> JsonObject:
    """`question` as plain data."""
    message: JsonObject = {"text": question.text}
    if question.choices:
        message["choices"] = [[choice.label, choice.value] for choice in question.choices]
    data: JsonObject = {
        "kind": question.kind,
        "message": message,
        "function": question.function,
        "arguments": question.arguments,
        "field": question.field if isinstance(question, ArgumentQuestion) else "",
        "terms": _terms_to_json(question.terms) if isinstance(question, ApprovalQuestion) else None,
        "nested": question.nested,
    }
    if isinstance(question, InputQuestion):
        data |= {key: getattr(question, key) for key in ("resume", "number", "allowed", "key")}
        data |= {"said": list(question.said), "only_choices": question.only_choices}
        if question.takes_files:
            data["takes_files"] = True
    if isinstance(question, ApprovalQuestion) and question.further:
        data["further"] = list(question.further)
    if isinstance(question, ApprovalQuestion) and question.interrupted is not None:
        before = question.interrupted
        data["goes_on"] = [before.state, before.answer, before.kind, before.number]
        data |= {"said": list(question.said), "only_choices": False}
    return data


def question_from_json(data: Mapping[str, Any]) -> Question:
    """Restore a question that `question_to_json` wrote, in this release or an earlier one."""
    message = data["message"]
    choices = tuple(Choice(*one) for one in message.get("choices", ()))
    common = (message["text"], data["function"], data["arguments"], choices, data.get("nested", False))
    said = tuple(data.get("said", ()))
    match data["kind"]:
        case ArgumentQuestion.kind:
            return ArgumentQuestion(*common, field=data["field"])
        case ConfirmQuestion.kind:
            return ConfirmQuestion(*common)
        case ApprovalQuestion.kind:
            interrupted = Resumed(*data["goes_on"]) if data.get("goes_on") else None
            terms, further = _terms_from_json(data["terms"]), tuple(data.get("further", ()))
            return ApprovalQuestion(*common, terms=terms, interrupted=interrupted, said=said, further=further)
    return InputQuestion(
        *common,
        resume=data["resume"],
        number=data.get("number", 1),
        allowed=data.get("allowed", ""),
        said=said,
        key=data.get("key", ""),
        only_choices=data.get("only_choices", False),
        takes_files=data.get("takes_files", False),
    )


def _terms_to_json(terms: ApprovalTerms) -> JsonObject:
    return {
        "digest": terms.digest,
        "grant": terms.grant,
        "code": terms.code,
        "role": terms.role,
        "by_other": terms.by_other,
        "asker": context_to_json(terms.asker),
    }


def _terms_from_json(data: JsonObject) -> ApprovalTerms:
    role = None if data["role"] is None else Role(data["role"])
    asker = context_from_json(data["asker"])
    return ApprovalTerms(data["digest"], data["grant"], data["code"], role, data["by_other"], asker)


_UNFIT = re.compile("[\0\ud800-\udfff]")


_RESULT_KEYS = frozenset({"attachments", "at_list", "data", "error", "handled", "messages", "metadata", "reply"})


def is_result_form(keys: Iterable[str]) -> bool:
    """Whether a mapping or model with these keys is a result, not data: `handled`, and otherwise only keys of one."""
    return "handled" in keys and _RESULT_KEYS.issuperset(keys)


def normalised(value: Any, chat: ChatRef | None = None) -> FunctionResult:
    """Convert a handler's return value:

    a FunctionResult itself; a bool: handled or not; None: handled, nothing to say; a text: said, unless empty;
    `("ok", v)`, `("ok", v, updates)`, `("error", reason)`; `(v, updates)`: v, and updates of the turn's state;
    `{"status": "success" | "error", "msg": …}`; a mapping, a pydantic model or a dataclass with `handled`, and
    optionally `messages`, `at_list` and others: the result with these fields; any other JSON value: data. `chat`: chat
    of the members in `at_list`. Raises TypeError or ValueError for other values.
    """
    if isinstance(value, FunctionResult):
        return value
    if value is None:
        return FunctionResult()
    if isinstance(value, bool):
        return FunctionResult(handled=value)
    if isinstance(value, str):
        return FunctionResult(messages=(Message(value),), data=value) if value else FunctionResult()
    if isinstance(value, tuple):
        return _of_tuple(value, chat)
    if isinstance(value, Mapping) and set(value) == {"status", "msg"} and value["status"] in ("success", "error"):
        if value["status"] == "error":
            return FunctionResult.fail(ErrorCode.FAILED, str(value["msg"]))
        return normalised(value["msg"], chat)
    fields = value if isinstance(value, Mapping) else _as_json(value)
    if isinstance(fields, Mapping) and is_result_form(fields):
        return _of_fields(fields, chat)
    return FunctionResult(data=_as_json(value))


def _of_fields(fields: Mapping[str, Any], chat: ChatRef | None) -> FunctionResult:
    """Result from its fields. The first message mentions the members of `at_list`, the last has the attachments."""
    said = [*_listed(fields, "messages"), *([fields["reply"]] if fields.get("reply") is not None else [])]
    messages = [one if isinstance(one, Message) else Message(one) for one in said]
    mentions = tuple(_member(one, chat) for one in _listed(fields, "at_list"))
    files = tuple(one if isinstance(one, Attachment) else Attachment(**one) for one in _listed(fields, "attachments"))
    if files and not messages:
        messages = [Message("")]
    if mentions and not messages:
        raise ValueError("at_list needs a message that mentions its members")
    if mentions:
        messages[0] = replace(messages[0], mentions=(*messages[0].mentions, *mentions))
    if files:
        messages[-1] = replace(messages[-1], attachments=(*messages[-1].attachments, *files))
    error = fields.get("error")
    return FunctionResult(
        handled=fields["handled"],
        messages=tuple(messages),
        data=fields.get("data"),
        error=None if error is None else FunctionError(ErrorCode.FAILED, error),
        metadata=fields.get("metadata") or {},
    )


def _listed(fields: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = fields.get(name)
    return () if value is None else _instance(value, list, tuple)


def _member(member: Any, chat: ChatRef | None) -> MemberRef:
    """Member by ref, by key, or by native id in `chat`. Raises TypeError or ValueError."""
    if isinstance(member, MemberRef):
        return member
    if chat is None or _instance(member, str).startswith(f"{chat.platform}:{chat.account}:"):
        return MemberRef.parse(member)
    return MemberRef(chat.platform, chat.account, member)


def _instance(value: Any, *kinds: type) -> Any:
    """`value` if it is an instance of one of `kinds`. Raises TypeError."""
    if not isinstance(value, kinds):
        raise TypeError(
            f"a result has {type(value).__name__} instead of {' or '.join(kind.__name__ for kind in kinds)}"
        )
    return value


def _of_tuple(value: tuple[Any, ...], chat: ChatRef | None) -> FunctionResult:
    match value:
        case ("ok", result):
            return normalised(result, chat)
        case ("error", reason):
            return FunctionResult.fail(ErrorCode.FAILED, str(reason))
        case ("ok", result, Mapping() as updates) | (result, Mapping() as updates):
            return replace(normalised(result, chat), context_updates=dict(updates))
    return FunctionResult(data=_as_json(list(value)))


def _as_json(value: Any) -> JsonValue:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return orjson.loads(orjson.dumps(value))


_FIELDS: Sequence[tuple[str, tuple[type, ...]]] = (
    ("handled", (bool,)),
    ("messages", (tuple, list)),
    ("error", (NoneType, FunctionError)),
    ("question", (NoneType, ArgumentQuestion, ConfirmQuestion, ApprovalQuestion, InputQuestion)),
    ("context_updates", (dict, Mapping)),
    ("metadata", (dict, Mapping)),
    ("outside", (bool,)),
)


def storable(result: FunctionResult) -> FunctionResult:
    """`result` with values that every store and network accepts: texts without NUL and lone surrogates, plain JSON
    data, with non-text keys and numbers beyond 64 bits converted to texts, and Messages for texts in `messages`. Raises
    an exception, usually TypeError or ValueError, for fields of other types."""
    for name, kinds in _FIELDS:
        if not isinstance(getattr(result, name), kinds):
            _instance(getattr(result, name), *kinds)
    given: Sequence[Any] = result.messages
    if type(given) is not tuple or any(type(message) is not Message for message in given):
        said = tuple(Message(one) if isinstance(one, str) else _instance(one, Message) for one in given)
        result = replace(result, messages=said)
    for message in result.messages:
        if message != Message(message.text, markdown=message.markdown) or storable_text(message.text) != message.text:
            result = replace(result, messages=tuple(map(_fit_message, result.messages)))
            break
    if result.error is not None:
        result = replace(result, error=_fit_error(result.error))
    if result.question is not None:
        result = replace(result, question=_fit_question(result.question))
    if result.data is None and not result.context_updates and not result.metadata:
        return result
    facts = (result.data, result.context_updates, result.metadata)
    fit = plain(facts)
    if fit is facts:
        return result
    data, updates, metadata = fit
    return replace(result, data=data, context_updates=updates, metadata=metadata)


def _fit_error(error: FunctionError) -> FunctionError:
    fields = tuple(map(storable_text, _instance(error.fields, tuple, list)))
    return FunctionError(_instance(error.code, ErrorCode), storable_text(error.text), fields)


def _fit_message(message: Message) -> Message:
    """`message` with values that every store and network accepts."""
    return replace(
        message,
        text=storable_text(message.text),
        brief=storable_text(message.brief),
        to=None if message.to is None else _fit_ref(_instance(message.to, ChatRef, MemberRef)),
        reply_to=None if message.reply_to is None else storable_text(message.reply_to),
        mentions=tuple(_fit_ref(_instance(one, MemberRef)) for one in message.mentions),
        attachments=tuple(map(_fit_attachment, message.attachments)),
        choices=_fit_choices(message.choices),
        update=None if message.update is None else _fit_message(_instance(message.update, Message)),
    )


def _fit_ref(ref: Any) -> Any:
    return ref._replace(native=storable_text(ref.native))


def _fit_attachment(file: Attachment) -> Attachment:
    _instance(file, Attachment)
    size = file.size_bytes if file.size_bytes is None or abs(file.size_bytes) < 2**63 else None
    return Attachment(storable_text(file.name), storable_text(file.media_type), storable_text(file.url), size)


def _fit_choices(choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    return tuple(replace(one, label=storable_text(one.label), value=storable_text(one.value)) for one in choices)


def _fit_question(question: Question) -> Question:
    """`question` with values that every store and network accepts."""
    question = replace(question, text=storable_text(question.text), choices=_fit_choices(question.choices))
    if isinstance(question, InputQuestion):
        question = replace(question, resume=plain(_instance(question.resume, dict)))
    # Raises for wrong types in rare fields, which would otherwise fail when the turn is stored.
    orjson.dumps(question_to_json(question), default=str)
    return question


def plain(value: Any) -> Any:
    """`value` itself if JSON can encode it; otherwise a copy with unsupported keys and numbers converted to texts.
    Raises TypeError or ValueError for values without a JSON form: circular, or nested too deep for the records."""
    try:
        _require_encodable(value)
    except TypeError:
        text = storable_text(json.dumps(value, default=str, ensure_ascii=False))
        value = json.loads(text, parse_int=_within_64_bits)
        _require_encodable(value)
    return value


def _require_encodable(value: Any) -> None:
    # Records put results into a few levels of lists, and the encoder limits the depth.
    orjson.dumps((((((((value,),),),),),),), default=str)


def storable_text(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD; unchanged if it has none."""
    # Fast path for almost all texts, without a regular expression.
    if text.isascii() and "\0" not in text:
        return text
    return _UNFIT.sub("\ufffd", text)


def _within_64_bits(digits: str) -> int | str:
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else digits


def ended_as(result: FunctionResult) -> str:
    """How the run ended, as a record value: `ok`, `asked`, or an ErrorCode."""
    if result.error is not None:
        return result.error.code.value
    return "ok" if result.question is None else "asked"


def result_to_json(result: FunctionResult) -> JsonObject:
    """`result` as plain data for the ledger, including its question: a retried turn asks it again instead of repeating
    the run."""
    data: JsonObject = {
        "handled": result.handled,
        "messages": [message_to_json(message) for message in result.messages],
        "data": result.data,
        "error": [result.error.code.value, result.error.text, list(result.error.fields)] if result.error else None,
        "context_updates": dict(result.context_updates),
        "metadata": dict(result.metadata),
        "outside": result.outside,
    }
    if result.question is not None:
        data["question"] = question_to_json(result.question)
    return data


def result_from_json(data: JsonObject) -> FunctionResult:
    """Restore a result that `result_to_json` wrote."""
    error = data["error"]
    return FunctionResult(
        handled=data["handled"],
        messages=tuple(message_from_json(message) for message in data["messages"]),
        data=data["data"],
        error=FunctionError(ErrorCode(error[0]), error[1], tuple(error[2])) if error else None,
        context_updates=data["context_updates"],
        metadata=data["metadata"],
        outside=data.get("outside", False),
        question=question_from_json(data["question"]) if "question" in data else None,
    )


def message_to_json(message: Message) -> JsonObject:
    """`message` as plain data without empty fields."""
    data: JsonObject = {"text": message.text}
    if isinstance(message.to, ChatRef):
        data["to_chat"] = message.to.key
    elif message.to is not None:
        data["to_member"] = message.to.key
    if message.reply_to is not None:
        data["reply_to"] = message.reply_to
    if message.mentions:
        data["mentions"] = [member.key for member in message.mentions]
    if message.attachments:
        data["attachments"] = [[one.name, one.media_type, one.url, one.size_bytes] for one in message.attachments]
    if message.choices:
        data["choices"] = [choice.to_json() for choice in message.choices]
    if message.brief:
        data["brief"] = message.brief
    if message.markdown:
        data["markdown"] = True
    if message.update is not None:
        data["update"] = message_to_json(message.update)
    return data


def message_from_json(data: JsonObject) -> Message:
    """Restore a message that `message_to_json` wrote."""
    to: ChatRef | MemberRef | None = None
    if "to_chat" in data:
        to = ChatRef.parse(data["to_chat"])
    elif "to_member" in data:
        to = MemberRef.parse(data["to_member"])
    return Message(
        text=data["text"],
        to=to,
        reply_to=data.get("reply_to"),
        mentions=tuple(MemberRef.parse(key) for key in data.get("mentions", ())),
        attachments=tuple(Attachment(*one) for one in data.get("attachments", ())),
        choices=tuple(Choice(*one) for one in data.get("choices", ())),
        brief=data.get("brief", ""),
        markdown=data.get("markdown", False),
        update=message_from_json(data["update"]) if "update" in data else None,
    )
