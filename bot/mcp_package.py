"""Whether the library of the Model Context Protocol is installed: it is an extra."""

from __future__ import annotations

import importlib.util

MISSING = "this installation lacks the package `mcp`: install Rollcall with its extra, as in `rollcall[mcp]`"


def is_installed() -> bool:
    """Without loading it, which takes half a second."""
    return importlib.util.find_spec("mcp") is not None
