"""What a script may call: what its caller may, as far as the operator lets the script."""

from __future__ import annotations

from pathlib import PurePosixPath

from function_calls.basic.keywords import Grants
from function_calls.spec import FunctionSpec
from function_calls.touches import reaches_out
from services.wildcards import name_matches


def may_call(spec: FunctionSpec, grants: Grants) -> bool:
    """Whether a script with these grants may call `spec`. What does not reach beyond the chat needs none; the caller's
    own rights are checked where it runs."""
    return not reaches_out(spec) or any(name_matches(pattern, spec.name) for pattern in grants.functions)


def tool_name(text: str) -> str:
    """The name of the tool that a script means by `x`, `x.bas` or `shop.gbdialog/x.bas`."""
    name = PurePosixPath(text.strip().replace("\\", "/")).name
    return name[: -len(".bas")] if name.casefold().endswith(".bas") else name
