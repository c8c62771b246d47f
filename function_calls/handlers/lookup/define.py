"""Definitions of words."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.failures import not_reached
from function_calls.spec import FunctionResult
from function_calls.turn import PUBLIC
from services.web.dictionary import SOURCE, Dictionary
from services.web.http import WebError

_MOST_MEANINGS = 4
_MOST_SENSES = 3


@tool_function(
    description="Look a word up in a dictionary",
    examples=(
        "define the word {word}",
        "what does the word {word} mean",
        "what is the definition of {word}",
        "look up {word} in the dictionary",
        "what's the meaning of the word {word}",
        "{word}这个词是什么意思",
        "查词典{word}",
    ),
    commands=("dictionary", "词典"),
    tags="find_out",
    touches="reads_outside",
    effect="read",
    ask={"word": "@define.ask_word"},
)
async def define(
    context: MessageContext,
    word: Annotated[str, Field(description="Word or short term", min_length=1, max_length=60, pattern=r"\S")],
    *,
    dictionary: Dictionary,
    call: Call,
) -> FunctionResult:
    """Return the first meanings by part of speech, with examples and the name of the dictionary."""
    word = " ".join(word.split())
    try:
        found = (await dictionary.look_up(word))[:_MOST_MEANINGS]
    except WebError as error:
        return not_reached(error, "define", call.profile.texts)
    lines = [word]
    for one in found:
        key = "define.kind" if one.language == "English" else "define.kind_in"
        lines.append(call.say(key, kind=one.part_of_speech, language=one.language))
        for number, (definition, example) in enumerate(one.senses[:_MOST_SENSES], 1):
            lines.append(f"{number}. {definition}")
            lines += [call.say("define.example", example=example)] if example else []
    lines.append(call.say("define.source", source=SOURCE))
    data = [[one.language, one.part_of_speech, *(text for text, _ in one.senses[:_MOST_SENSES])] for one in found]
    return replace(FunctionResult.say("\n".join(lines), data=data), metadata={PUBLIC: True})
