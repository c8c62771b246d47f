"""The names of tools: from a file's name, or from what the file says of each of its tools."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from function_calls.basic.codes import Code, Fault, Profile
from function_calls.basic.nodes import At

LONGEST_NAME = 64
PROVIDER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What providers of models take for the name of a function."""
_OTHER = re.compile(r"[^\w-]+")
_WORDS = re.compile(r"[a-z0-9]+")
_LITTLE = frozenset(
    {
        "a", "about", "an", "and", "at", "by", "for", "from", "in", "is", "of", "on", "or", "s", "that", "the", "to",
        "with", "your",
    }
)  # fmt: skip
_MOST_WORDS = 5
_FIRST = At(1, 1)


def stem_of(name: str) -> str:
    """A file's name without its folders and `.bas`."""
    file = PurePosixPath(name.replace("\\", "/")).name
    return file[:-4] if file.lower().endswith(".bas") else file


def tool_name(
    written: str, profile: Profile, at: At = _FIRST, what: str = "the file's name"
) -> tuple[str, Fault | None]:
    """The tool's name, and what is to be said of it. An error: no tool can have this name."""
    if PROVIDER_NAME.fullmatch(written):
        return written, None
    allowed = f"a tool's name has 1 to {LONGEST_NAME} of the letters A-Z and a-z, digits, `_` and `-`"
    name = _OTHER.sub("_", written.strip()).strip("_")
    if not name:
        return "", Fault(at, Code.BAD_NAME, f"no tool can be named after {what} `{written}`: {allowed}")
    if len(name) > LONGEST_NAME:
        return "", Fault(at, Code.BAD_NAME, f"{what} `{written}` is too long for the name of a tool: {allowed}")
    if profile is Profile.STRICT:
        hint = f"; `{name}` could" if PROVIDER_NAME.fullmatch(name) else ""
        return "", Fault(at, Code.BAD_NAME, f"`{written}` cannot be the name of a tool: {allowed}{hint}")
    if PROVIDER_NAME.fullmatch(name):
        told = f"the tool of `{written}` is called `{name}`: {allowed}"
        return name, Fault(at, Code.BAD_NAME, told, "warning")
    told = (
        f"the tool is called `{name}`, but models, which know only names of A-Z, a-z, 0-9, `_` and `-`, see it under a "
        f"made-up one; say in its DESCRIPTION what it is for, or give {what} Latin letters"
    )
    return name, Fault(at, Code.BAD_NAME, told, "warning")


def name_among(file: str, number: int, description: str) -> str:
    """The name of one of several tools of a file that names none of them: the file's and the first words of the
    description, which stays when another is put before it; else the file's and its number, from 1."""
    words = [word for word in _WORDS.findall(description.lower()) if word not in _LITTLE][:_MOST_WORDS]
    while words and len(name := "_".join([file, *words])) > LONGEST_NAME:
        words.pop()
    return name if words and description.isascii() else f"{file}_{number}"


def in_words(name: str) -> str:
    """A name as a sentence would have it: `get-price` is `Get price`."""
    words = " ".join(re.split(r"[\s_-]+", name)).strip()
    return words[:1].upper() + words[1:]
