"""A fence around what comes from outside, so that a model can tell it from what it is told to do."""

from __future__ import annotations


def fenced(json_text: str, function: str) -> str:
    """A function's result as data. The text is JSON, in which every `<` can be written as an escape that means the
    same: nothing inside can close the fence or open another."""
    inside = json_text.replace("<", "\\u003c")
    return f"<data from={_name(function)} use=information-only>\n{inside}\n</data>"


def _name(function: str) -> str:
    return "".join(one if one.isalnum() or one in "_.-" else "_" for one in function)
