"""Search in the documents of the chat's knowledge bases."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from function_calls.call import Call, Path
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from function_calls.turn import SOURCES
from services.knowledge import KnowledgeBases, Passage
from services.refs import ErrorCode

_FOR_CHAT = 3
_FOR_MODEL = 5


@tool_function(
    description="Search the documents of this chat, such as rules, manuals and guides, for passages that answer a "
    "question. Answer from the passages only, and name their file and place",
    examples=(
        "what do our documents say about {query}",
        "look up {query} in the documents",
        "search the knowledge base for {query}",
        "find {query} in the manual",
        "what do the rules say about {query}",
        "文档里怎么说{query}",
        "在知识库里查{query}",
    ),
    commands=("kb", "知识"),
    tags="find_out",
    touches="reads_outside",
    effect="read",
    ask={"query": "@knowledge.ask_query"},
)
async def knowledge_search(
    context: MessageContext,
    query: Annotated[
        str,
        Field(description="Words of the question, in the documents' language", max_length=400, pattern=r"\S"),
    ],
    *,
    knowledge: KnowledgeBases,
    call: Call,
) -> FunctionResult:
    """Return the passages that fit best, with their file and place."""
    names = knowledge.visible(context.bot, context.chat.key, call.profile.active)
    if not names:
        return FunctionResult.fail(ErrorCode.ENVIRONMENT, call.say("knowledge.none"))
    found = await knowledge.search(names, query, _FOR_CHAT if call.path is Path.COMMAND else _FOR_MODEL)
    if not found:
        return FunctionResult.say(call.say("knowledge.nothing", query=query), data={"passages": []})
    sources = [_source(passage, call, is_one_of_many=len(names) > 1) for passage in found]
    pairs = list(zip(sources, found, strict=True))
    text = "\n\n".join(f"{source}\n{one.text}" for source, one in pairs)
    data = [{"source": source, "text": one.text} for source, one in pairs]
    files = {one.file.rpartition("/")[2]: source for source, one in reversed(pairs)}
    return replace(FunctionResult.say(text, data={"passages": data}), metadata={SOURCES: files})


def _source(passage: Passage, call: Call, *, is_one_of_many: bool) -> str:
    file = f"{passage.base}/{passage.file}" if is_one_of_many else passage.file
    if passage.page:
        place = call.say("knowledge.page", number=passage.page)
    else:
        place = passage.heading or call.say("knowledge.line", number=passage.line)
    return call.say("knowledge.source", file=file, place=place)
