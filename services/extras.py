"""Optional packages."""

from __future__ import annotations


def missing_extra(extra: str, package: str) -> str:
    """Text for operators: a package of Rollcall's `extra` is missing, and how it is installed."""
    return (
        f"the package {package!r} is missing: install 'rollcall[{extra}]' with pip, pipx or uv; "
        "./run installs it when it starts with these settings"
    )
