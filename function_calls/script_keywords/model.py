"""What scripts ask the language model: LLM and REWRITE."""

from __future__ import annotations

from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import text_of
from function_calls.scripts.model import ModelOfScripts


@basic_keyword("LLM {prompt} [, {about}]", effect="read")
async def llm(run: ScriptRun, prompt: Value, about: Value = None, *, model: ModelOfScripts) -> Value:
    """What the language model writes when it is told to: `LLM "Put this in one sentence", page`. What comes from
    outside belongs behind the comma, where it is taken as information."""
    return await model.ask(run, text_of(prompt), text_of(about))


@basic_keyword("REWRITE {text}", effect="read")
async def rewrite(run: ScriptRun, text: Value, *, model: ModelOfScripts) -> Value:
    """A text in better words of the same meaning."""
    return await model.rewrite(run, text_of(text))
