"""Where a definition stands, as `file:line`, and where foreign code broke while it was being read."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Collection
from typing import Any

_MOST_CHARS = 500


def place_of(function: Callable[..., Any]) -> str:
    """`file:line` of a Python function; the name of what has no code of its own."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{shortened(code.co_filename)}:{code.co_firstlineno}" if code else getattr(function, "__qualname__", "?")


def shortened(file: str) -> str:
    """`file` relative to the working folder where it lies in there."""
    # By text, not by Path: every function at every start is asked for its place.
    return file.removeprefix(os.path.join(os.getcwd(), ""))


def where_it_broke(error: BaseException, files: Collection[str]) -> str:
    """`file:line` of the last of `files` that `error` came through; empty when it came through none of them."""
    if isinstance(error, SyntaxError) and error.filename and error.filename in files:
        return f"{shortened(error.filename)}:{error.lineno or 1}"
    places = [
        f"{shortened(frame.f_code.co_filename)}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in files
    ]
    return places[-1] if places else ""


def last_place(error: BaseException, *but: str) -> str:
    """`file:line` of the last file that `error` came through, apart from these and Python's own import; empty where
    there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{shortened(error.filename)}:{error.lineno or 1}"
    places = [
        f"{shortened(frame.f_code.co_filename)}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename not in but and not frame.f_code.co_filename.startswith("<frozen importlib")
    ]
    return places[-1] if places else ""


def told(error: BaseException) -> str:
    """What `error` says, with its kind; for operators, never for a chat."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # noqa: BLE001 - an author's exception may fail at saying what it is
        text = ""
    kind = type(error).__name__
    return f"{kind}: {text[:_MOST_CHARS]}" if text else kind
