"""Calls as XML in prose: how the protocol `xml_text` writes and reads them.

An element stands for each argument, named like it; values that are no text are read in the type that the schema asks
for. There is no document type and no entity but the five of XML itself, and depth and length have a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.text_calls import CallForm, Schemas, UnreadableCalls
from services.llm.tool_calls import plain_name
from services.llm.typed_text import typed
from services.refs import ErrorCode

_MOST_DEPTH = 64
_TAG = re.compile(r"[A-Za-z_][\w.-]{0,63}")
_SIGNS = re.compile(r"<tool\s+name\s*=|<tools>\s*<tool\b")
_NAME = re.compile(r"<tool\s[^>]{0,200}?name\s*=\s*[\"'](?P<name>[^\"'<>]{1,64})[\"']")
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]{0,200}\?>")
_ITEM, _NAMED = "item", "value"


def write_calls(calls: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> str:
    """The block by which a model calls functions, each with its arguments."""
    lines = ["```xml", "<tools>"]
    for name, arguments in calls:
        lines.append(f"  <tool name={quoteattr(name)}>")
        if arguments:
            lines += ["    <parameters>"]
            lines += [line for key, value in arguments.items() for line in _written(key, value, " " * 6)]
            lines += ["    </parameters>"]
        lines.append("  </tool>")
    return "\n".join([*lines, "</tools>", "```"])


def _written(key: str, value: JsonValue, indent: str) -> list[str]:
    """The element for one argument, line by line."""
    tag = key if _TAG.fullmatch(key) else _NAMED
    opening = f"{indent}<{tag}>" if tag == key else f"{indent}<{tag} name={quoteattr(key)}>"
    inner: list[str] = []
    if isinstance(value, dict):
        inner = [line for name, one in value.items() for line in _written(name, one, indent + "  ")]
    elif isinstance(value, list):
        inner = [line for one in value for line in _written(_ITEM, one, indent + "  ")]
    if inner:
        return [opening, *inner, f"{indent}</{tag}>"]
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return [f"{opening}{_text(text)}</{tag}>"]


def _text(text: str) -> str:
    """`text` as it may stand in an element; what could lose its ends or its form goes into CDATA."""
    if "]]>" in text or not (text != text.strip() or "\n" in text or "&" in text or "<" in text):
        return escape(text)
    return f"<![CDATA[{text}]]>"


@dataclass(slots=True)
class _Element:
    """One element of the document."""

    tag: str
    attributes: Mapping[str, str]
    pieces: list[tuple[str, bool]] = field(default_factory=list)
    """Text, and whether it stood in CDATA."""
    children: list[_Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it stands for: its attribute `name`, else its tag."""
        return self.attributes.get("name", self.tag)

    def from_attributes(self) -> list[_Element]:
        """Its attributes, as elements of their names."""
        return [_Element(name, {}, [(text, True)]) for name, text in self.attributes.items()]

    @property
    def text(self) -> str:
        """All the text, less the white space around it that only lays it out."""
        if self.children:
            return "".join(text for text, _ in self.pieces).strip()
        pieces = list(self.pieces)
        if pieces and not pieces[0][1]:
            pieces[0] = (pieces[0][0].lstrip(), False)
        if pieces and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0].rstrip(), False)
        return "".join(text for text, _ in pieces)


class _Reader:
    """Builds the elements of one block."""

    def __init__(self) -> None:
        self.root = _Element("", {})
        self._open = [self.root]
        self._in_cdata = False

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, attributes)
        self._open[-1].children.append(element)
        self._open.append(element)
        if len(self._open) > _MOST_DEPTH:
            raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER)

    def end(self, tag: str) -> None:
        self._open.pop()

    def text(self, text: str) -> None:
        self._open[-1].pieces.append((text, self._in_cdata))

    def cdata(self, *, begins: bool) -> None:
        self._in_cdata = begins


def _parsed(source: str) -> list[_Element]:
    """The elements at the top of `source`, which has no single root. Raises UnreadableCalls."""
    reader, parser = _Reader(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartCdataSectionHandler = lambda: reader.cdata(begins=True)
    parser.EndCdataSectionHandler = lambda: reader.cdata(begins=False)
    before, inside = b"<answer>", _DECLARATION.sub("", source).encode("utf-8", "replace")
    try:
        # Inside of an element there can be no document type, so no entity can be declared.
        parser.Parse(b"%b%b</answer>" % (before, inside), True)
    except expat.ExpatError:
        ends_early = parser.ErrorByteIndex >= len(before) + len(inside)
        fault = ErrorCode.TRUNCATED if ends_early else ErrorCode.MALFORMED_BY_PROVIDER
        raise UnreadableCalls(fault, _name_in(source)) from None
    (answer,) = reader.root.children
    if answer.text:
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER, _name_in(source))
    return answer.children


def _calls_in(source: str, schemas: Schemas) -> list[JsonObject]:
    if _SIGNS.search(source) is None:
        return []
    calls: list[JsonObject] = []
    for element in _parsed(source):
        for tool in element.children if element.tag == "tools" else [element]:
            calls += _calls_of(tool, schemas)
    return calls


def _calls_of(tool: _Element, schemas: Schemas) -> list[JsonObject]:
    """The calls of one tool: its arguments stand in `parameters` or directly in it; or there are several `action`s."""
    if tool.tag != "tool" or tool.text or "name" not in tool.attributes:
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER)
    schema = schemas.get(plain_name(tool.name), {})
    groups = [tool.children]
    if [one.tag for one in tool.children] == ["parameters"] and not tool.children[0].text:
        groups = [tool.children[0].children]
    elif tool.children and all(one.tag == "action" for one in tool.children):
        groups = [[*one.from_attributes(), *one.children] for one in tool.children]
    arguments = [_object(group, schema, tool.name) for group in groups]
    return [{"name": tool.name, "arguments": orjson.dumps(one).decode()} for one in arguments]


def _object(elements: Sequence[_Element], schema: JsonObject, function: str) -> JsonObject:
    properties = schema.get("properties") or {}
    groups: dict[str, list[_Element]] = {}
    for element in elements:
        groups.setdefault(element.name, []).append(element)
    found: JsonObject = {}
    for key, group in groups.items():
        inner = properties.get(key)
        inner = inner if isinstance(inner, dict) else {}
        if inner.get("type") == "array":
            found[key] = _list(group, inner, function)
        elif len(group) > 1:
            raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER, function)
        elif not _is_left_empty(group[0], inner):
            found[key] = _value(group[0], inner, function)
    return found


def _is_left_empty(element: _Element, schema: JsonObject) -> bool:
    """Whether nothing was given where nothing is no value."""
    return not element.children and not element.text and schema.get("type") not in (None, "string")


def _list(group: Sequence[_Element], schema: JsonObject, function: str) -> JsonValue:
    """A list: in `item` elements, as JSON, or as one element of its name for each item."""
    items = schema.get("items")
    items = items if isinstance(items, dict) else {}
    only = group[0] if len(group) == 1 else None
    if only is not None and only.children and all(one.tag == _ITEM for one in only.children) and not only.text:
        return [_value(one, items, function) for one in only.children]
    if only is not None and not only.children and (not only.text or only.text.startswith("[")):
        return typed(only.text or "[]", schema)
    return [_value(one, items, function) for one in group]


def _value(element: _Element, schema: JsonObject, function: str) -> JsonValue:
    if schema.get("type") == "array":
        return _list([element], schema, function)
    if not element.children:
        return typed(element.text, schema)
    if element.text or schema.get("type") == "string":
        # Markup that was to be text, and had to be in CDATA.
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER, function)
    if "properties" not in schema and all(one.tag == _ITEM for one in element.children):
        return [_value(one, {}, function) for one in element.children]
    return _object(element.children, schema, function)


def _name_in(source: str) -> str:
    named = _NAME.search(source)
    return named["name"] if named else ""


def _is_complete(source: str) -> bool:
    try:
        _parsed(source)
    except UnreadableCalls:
        return False
    return True


XML_CALLS = CallForm(
    languages=frozenset({"", "xml"}),
    signs=_SIGNS,
    is_whole=lambda text: text.startswith(("<tools>", "<tool ", "<?xml")),
    is_complete=_is_complete,
    calls_in=_calls_in,
)
