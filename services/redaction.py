"""Secrets never reach a log: known values, and what looks like a key."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"
_SHORTEST_SECRET = 6
_LOOKS_SECRET = re.compile(
    r"""\b(?:sk|pk|rk|xox[abposr]|ghp|gho|ghs|github_pat|glpat|AKIA|ya29)[-_.A-Za-z0-9]{12,}"""
    r"""|(?i:\bbearer\s+)[-._~+/A-Za-z0-9]{8,}=*"""
    r"""|(?i:\b(?:api[-_]?key|token|secret|password|passwd|authorization)["']?\s*[=:]\s*["']?)[^\s"',;&]{6,}"""
    r"""|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"""
)


class Redactor:
    """Replaces secrets in texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are values to hide wherever they stand; shorter ones than six characters would hide words."""
        known = sorted({one for one in secrets if len(one) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, text: str) -> str:
        """`text` with every secret replaced by `***`."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        return _LOOKS_SECRET.sub(HIDDEN, text)
