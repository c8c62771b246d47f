"""USE KB and CLEAR KB: knowledge bases that a chat searches on request."""

from __future__ import annotations

from function_calls.basic.codes import RunCode
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.run.session import translated_error
from function_calls.basic.values import text_of
from function_calls.ports import ActiveFunctions
from services.knowledge import ACTIVE_PREFIX, KnowledgeBases


@basic_keyword("USE KB {name}", effect="idempotent", touches=("stays_here",))
async def use_kb(run: ScriptRun, name: Value, *, active: ActiveFunctions, knowledge: KnowledgeBases) -> Value:
    """Let this chat search a knowledge base that the settings permit here. Returns a description of the change."""
    base = _permitted(run, name, knowledge)
    await active.activate(run.context.chat, [ACTIVE_PREFIX + base], run.context.sender.ref)
    return run.call.say("knowledge.used", name=base)


@basic_keyword("CLEAR KB [{name}]", effect="idempotent", touches=("stays_here",))
async def clear_kb(run: ScriptRun, name: Value = None, *, active: ActiveFunctions, knowledge: KnowledgeBases) -> None:
    """End the search of a knowledge base that USE KB began; without a name, of all of them."""
    permitted = knowledge.permitted(run.bot, run.context.chat.key)
    bases = permitted if name is None else [_permitted(run, name, knowledge)]
    await active.deactivate(run.context.chat, [ACTIVE_PREFIX + base for base in bases], run.context.sender.ref)


def _permitted(run: ScriptRun, name: Value, knowledge: KnowledgeBases) -> str:
    """The permitted base of this name, in any case. Raises RunError."""
    wanted = text_of(name).strip()
    for base in knowledge.permitted(run.bot, run.context.chat.key):
        if base.casefold() == wanted.casefold():
            return base
    raise translated_error(run, RunCode.NO_SUCH_THING, "kb.unknown", name=wanted[:100])
