"""What a `$ref` within a schema points to: by JSON pointer, by anchor, or by a part's `$id`. Nothing is fetched; but
the draft that a schema is read by has a schema of its own, which every validator knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from function_calls.schema_words import DRAFT_7, UnusableSchema, parts_of


class Target(NamedTuple):
    """A schema that a reference points to."""

    schema: Any
    base: str
    """The URI against which references within it are read."""
    name: str
    """What the reference calls it."""


class References:
    """The parts of one schema that have a name of their own."""

    def __init__(self, root: Mapping[str, Any], *, alone: bool, draft: str = DRAFT_7) -> None:
        """`alone`: what stands beside a `$ref` counts for nothing, as until draft 7. `draft`: what the schema is read
        by."""
        self._alone = alone
        self._draft = draft
        self._documents: dict[str, Any] = {"": root}
        self._anchors: dict[str, Any] = {}
        self._collect(root, "")

    def base_of(self, node: Mapping[str, Any], base: str) -> str:
        """The base URI within `node`, which stands where `base` is in force."""
        named = node.get("$id")
        if not isinstance(named, str) or named.startswith("#") or (self._alone and "$ref" in node):
            return base
        return _joined(base, named).partition("#")[0]

    def to_its_draft(self, reference: Any, base: str) -> str:
        """The whole URI of a reference to the schema of the draft, or to a part of it; empty for all others."""
        if not isinstance(reference, str):
            return ""
        document, _, fragment = _joined(base, reference).partition("#")
        if document in self._documents or _without_scheme(document) != _without_scheme(self._draft):
            return ""
        return f"{self._draft}#{fragment}" if fragment else self._draft

    def find(self, reference: Any, base: str) -> Target:
        """Raises UnusableSchema for what is not in this schema."""
        if not isinstance(reference, str):
            raise UnusableSchema(f"$ref must be a text, not {reference!r}")
        document, _, fragment = _joined(base, reference).partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            node, base = self._anchors.get(f"{document}#{fragment}"), document
        else:
            node, base = self._walked(self._documents.get(document), fragment, document)
        if not isinstance(node, Mapping | bool):
            raise UnusableSchema(f"$ref {reference!r} does not point into this schema, and nothing is fetched")
        return Target(node, base, fragment.rpartition("/")[2] or document.rpartition("/")[2])

    def _walked(self, node: Any, pointer: str, base: str) -> tuple[Any, str]:
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(name)] if isinstance(node, list) else node[name]
            except (LookupError, TypeError, ValueError):
                return None, base
            if isinstance(node, Mapping):
                base = self.base_of(node, base)
        return node, base

    def _collect(self, node: Any, base: str) -> None:
        if not isinstance(node, Mapping):
            return
        inner = self.base_of(node, base)
        if inner != base:
            self._documents.setdefault(inner, node)
        for anchor in (node.get("$anchor"), node.get("$id")):
            if isinstance(anchor, str) and anchor:
                self._anchors.setdefault(f"{inner}#{anchor.removeprefix('#')}", node)
        for part in parts_of(node):
            self._collect(part, inner)


def _without_scheme(uri: str) -> str:
    """Authors write http and https alike where a draft has one of them."""
    return uri.removeprefix("https:").removeprefix("http:")


def _joined(base: str, reference: str) -> str:
    """`reference` as a whole URI. A fragment stays with any base, also with one that has no path, as `urn:…`."""
    return base + reference if not reference or reference.startswith("#") else urljoin(base, reference)
