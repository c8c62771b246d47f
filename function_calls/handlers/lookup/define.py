"""Definitions of words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from function_calls.turn import PUBLIC
from services.refs import ErrorCode, JsonObject
from services.web.dictionary import Dictionary, Meanings, WordEntry, WordNotFound
from services.web.http import WebError

_MOST_MEANINGS = 4
_MOST_SENSES = 3


class DefineArguments(BaseModel):
    """Arguments of `define`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    word: str = Field(description="Word or short term, in any language", min_length=1, max_length=60, pattern=r"\S")


@tool_function(
    name="define",
    description="Look a word up in a dictionary",
    examples=(
        "define {word}",
        "define the word {word}",
        "what does the word {word} mean",
        "what is the definition of {word}",
        "look up {word} in the dictionary",
        "what's the meaning of {word}",
        "{word}这个词是什么意思",
        "查词典{word}",
        "在词典里查一下{word}",
    ),
    commands=("define", "dictionary", "词典"),
    tags="find_out",
    touches="reads_outside",
    effect="read",
    ask={"word": "@define.ask_word"},
)
async def define(
    context: MessageContext, args: DefineArguments, *, dictionary: Dictionary, call: Call
) -> FunctionResult:
    """Return the first meanings by part of speech, with examples and the name of the dictionary."""
    word = " ".join(args.word.split())
    try:
        entry = await dictionary.look_up(word)
    except WordNotFound:
        return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("define.not_found", word=word), ["word"])
    except WebError as error:
        may_retry = error.code is ErrorCode.TRANSIENT
        code = ErrorCode.TRANSIENT if may_retry else ErrorCode.ENVIRONMENT
        return FunctionResult.fail(code, call.say("define.try_again" if may_retry else "define.out_of_order"))
    shown = entry.meanings[:_MOST_MEANINGS]
    head = f"{entry.word}  {entry.phonetic}" if entry.phonetic else entry.word
    lines = [head, *(line for meanings in shown for line in _lines(meanings, call))]
    lines.append(call.say("define.source", source=entry.source))
    return replace(FunctionResult.say("\n".join(lines), data=_data(entry)), metadata={PUBLIC: True})


def _lines(meanings: Meanings, call: Call) -> Iterator[str]:
    key = "define.kind" if meanings.language == "English" else "define.kind_in"
    yield call.say(key, kind=meanings.part_of_speech, language=meanings.language)
    for number, sense in enumerate(meanings.senses[:_MOST_SENSES], 1):
        yield f"{number}. {sense.definition}"
        if sense.example:
            yield call.say("define.example", example=sense.example)


def _data(entry: WordEntry) -> JsonObject:
    return {
        "word": entry.word,
        "source": entry.source,
        "meanings": [
            {
                "part_of_speech": one.part_of_speech,
                "language": one.language,
                "definitions": [sense.definition for sense in one.senses[:_MOST_SENSES]],
            }
            for one in entry.meanings[:_MOST_MEANINGS]
        ],
    }
