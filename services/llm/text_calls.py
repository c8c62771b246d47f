"""Function calls in text as JSON or XML, for models without function calling: writing and parsing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import orjson

from services.llm.model import Offer, ToolCall
from services.llm.reading.markup import ReadText, Visible, is_call, visible_text, without_markup
from services.llm.reading.tool_arguments import MAX_ARGUMENT_CHARACTERS, exact_json, typed
from services.llm.reading.tool_calls import made_id, plain_name, read_calls
from services.refs import ErrorCode, JsonObject, JsonValue

_OPENING = re.compile(r"^[ \t]*```(?P<language>[\w-]{0,20})\s", re.MULTILINE)
_CLOSING = "```"
_MOST_CLOSINGS = 16

RESULT = "<result function="
"""Start of a function result in a prompt."""
Schemas = Mapping[str, JsonObject]
"""Schemas of the offered functions, by original and offered name."""


class UnreadableCalls(Exception):
    """The text contains calls that cannot be parsed, with the reason as `fault`."""

    def __init__(self, fault: ErrorCode, name: str = "") -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.name = name
        """The intended function, if it can be identified."""


@dataclass(frozen=True, slots=True)
class CallForm:
    """Notation of calls in text: how they are recognised and parsed."""

    languages: frozenset[str]
    """Language tags of fenced blocks that may contain calls."""
    signs: re.Pattern[str]
    """Matches text that resembles a call."""
    is_whole: Callable[[str], bool]
    """Whether a stripped text starts like an unfenced block of calls."""
    is_complete: Callable[[str], bool]
    """Whether a block is well formed, so that its fence ends there."""
    calls_in: Callable[[str, Schemas], list[JsonObject]]
    """Parse the calls of a block, each with `name` and `arguments`; may be empty. Raises UnreadableCalls."""


class _Block(NamedTuple):
    """Part of a text that may contain calls."""

    start: int
    end: int
    inside: str


def reader_of(form: CallForm, offer: Offer | None) -> ReadText:
    """Parser of answer texts for a request with `offer`. Unreadable calls become one call with a fault. Without offered
    functions it parses no calls, and suppresses texts that contain any."""
    if offer is None or not offer.functions:

        def read_words(content: str, seed: str = "") -> Visible:
            visible = visible_text(content, seed)
            return Visible("", leaked=True) if _has_calls(visible.text, form) else visible

        return read_words
    schemas = {function.original: function.parameters for function in offer.functions}
    schemas.update({function.name: function.parameters for function in offer.functions})

    def read(content: str, seed: str = "") -> Visible:
        text = without_markup(content)
        try:
            return _read(text, seed, form, schemas)
        except UnreadableCalls as bad:
            call = ToolCall("", bad.name, None, text[:MAX_ARGUMENT_CHARACTERS], bad.fault)
            return Visible("", leaked=False, calls=(replace(call, id=made_id(seed, 0, call)),))

    return read


def _read(text: str, seed: str, form: CallForm, schemas: Schemas) -> Visible:
    if len(text) > MAX_ARGUMENT_CHARACTERS and form.signs.search(text):
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER)
    entries: list[JsonObject] = []
    prose: list[str] = []
    place = 0
    for block in _blocks(text, form):
        found = form.calls_in(block.inside, schemas)
        if found:
            entries += found
            prose.append(text[place : block.start])
            place = block.end
    prose.append(text[place:])
    words = "".join(prose).strip()
    visible = visible_text(words)
    if form.signs.search(words) or RESULT in words or (visible.leaked and not entries):
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER)
    return Visible(visible.text, leaked=False, calls=read_calls({"tool_calls": [*entries]}, seed).calls)


def _has_calls(text: str, form: CallForm) -> bool:
    """Whether `text` contains a block of calls, readable or not."""
    if not form.signs.search(text):
        return False
    try:
        return any(form.calls_in(block.inside, {}) for block in _blocks(text, form))
    except UnreadableCalls:
        return True


def _blocks(text: str, form: CallForm) -> Iterator[_Block]:
    if form.is_whole(text.strip()):
        yield _Block(0, len(text), text.strip())
        return
    place = 0
    while opening := _OPENING.search(text, place):
        end, place = _end_of_block(text, opening.end(), form)
        if opening["language"].lower() in form.languages:
            yield _Block(opening.start(), place, text[opening.end() : end])


def _end_of_block(text: str, start: int, form: CallForm) -> tuple[int, int]:
    """Index of the end of a fenced block's content and of the block: the first closing fence that leaves the content
    well formed, since values may contain fences; else the first fence or the end of the text."""
    first, place = -1, start
    for _ in range(_MOST_CLOSINGS):
        place = text.find(_CLOSING, place)
        if place < 0:
            break
        first = place if first < 0 else first
        if form.is_complete(text[start:place]):
            return place, place + len(_CLOSING)
        place += len(_CLOSING)
    return (first, first + len(_CLOSING)) if first >= 0 else (len(text), len(text))


_NAME = r'"(?:name|function)"\s{0,20}:\s{0,20}"(?P<name>[^"\\]{1,64})"'
_SIGNS = re.compile(rf'\{{\s{{0,20}}"tool_calls"\s{{0,20}}:|{_NAME}\s{{0,20}},\s{{0,20}}"arguments"\s{{0,20}}:')


def write_json_calls(calls: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> str:
    """Write a fenced JSON block of calls, each a pair of name and arguments."""
    value = {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}
    return f"```json\n{orjson.dumps(value).decode()}\n```"


def _calls_in(source: str, schemas: Schemas) -> list[JsonObject]:
    signs = _SIGNS.search(source)
    try:
        value = exact_json(source)
    except (ValueError, RecursionError) as error:
        if signs is None:
            return []
        ends_early = isinstance(error, orjson.JSONDecodeError) and error.pos >= len(source.rstrip())
        fault = ErrorCode.TRUNCATED if ends_early else ErrorCode.INVALID_JSON
        raise UnreadableCalls(fault, signs["name"] or _name_in(source)) from None
    found: list[JsonObject] = []
    for entry in value if isinstance(value, list) else [value]:
        calls = _entries(entry)
        if calls is None:
            if signs is None:
                return []
            raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER, signs["name"] or _name_in(source))
        found += calls
    return found


def _entries(value: JsonValue) -> list[JsonObject] | None:
    """Calls in one JSON value, each with `name` and `arguments`; None if it is not a call or a list of calls."""
    if not isinstance(value, dict):
        return None
    if value.keys() == {"function", "arguments"} and isinstance(value["function"], str):
        return [{"name": value["function"], "arguments": value["arguments"]}]
    if not is_call(value):
        return None
    listed = value.get("tool_calls", [value.get("function_call", value)])
    entries: list[JsonObject] = []
    for one in listed if isinstance(listed, list) else [None]:
        function = one.get("function", one) if isinstance(one, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return None
        entries.append(function)
    return entries


def _name_in(source: str) -> str:
    named = re.search(_NAME, source)
    return named["name"] if named else ""


def _is_complete(source: str) -> bool:
    try:
        orjson.loads(source)
    except orjson.JSONDecodeError:
        return False
    return True


JSON_CALLS = CallForm(
    languages=frozenset({"", "json", "tool_calls"}),
    signs=_SIGNS,
    is_whole=lambda text: text.startswith(("{", "[")),
    is_complete=_is_complete,
    calls_in=_calls_in,
)


_MOST_DEPTH = 64
_TAG = re.compile(r"[A-Za-z_][\w.-]{0,63}")
_XML_CALLS_SIGNS = re.compile(r"<tool\s+name\s*=|<tools>\s*<tool\b")
_XML_CALLS_NAME = re.compile(r"<tool\s[^>]{0,200}?name\s*=\s*[\"'](?P<name>[^\"'<>]{1,64})[\"']")
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]{0,200}\?>")
_ITEM, _NAMED = "item", "value"


def write_xml_calls(calls: Sequence[tuple[str, Mapping[str, JsonValue]]]) -> str:
    """Write a fenced XML block of calls, each a pair of name and arguments."""
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
    """XML lines of the element for one argument, nested for objects and lists."""
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
    """Escaped `text`; CDATA if it has markup, line breaks or outer white space."""
    if "]]>" in text or not (text != text.strip() or "\n" in text or "&" in text or "<" in text):
        return escape(text)
    return f"<![CDATA[{text}]]>"


@dataclass(slots=True)
class _Element:
    """XML element with its text and children."""

    tag: str
    attributes: Mapping[str, str]
    pieces: list[tuple[str, bool]] = field(default_factory=list)
    """Pieces of text, each with whether it was CDATA."""
    children: list[_Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The attribute `name`, else the tag."""
        return self.attributes.get("name", self.tag)

    def from_attributes(self) -> list[_Element]:
        """Attributes as child elements, with the attribute's name as the tag."""
        return [_Element(name, {}, [(text, True)]) for name, text in self.attributes.items()]

    @property
    def text(self) -> str:
        """Text content without layout white space around it; CDATA is kept as it is."""
        if self.children:
            return "".join(text for text, _ in self.pieces).strip()
        pieces = list(self.pieces)
        if pieces and not pieces[0][1]:
            pieces[0] = (pieces[0][0].lstrip(), False)
        if pieces and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0].rstrip(), False)
        return "".join(text for text, _ in pieces)


class _Reader:
    """Builds the elements of a block from parser events."""

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
    """Parse the top-level elements of `source`, which needs no single root. Raises UnreadableCalls for malformed XML,
    text outside elements, and more than 64 levels."""
    reader, parser = _Reader(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartCdataSectionHandler = lambda: reader.cdata(begins=True)
    parser.EndCdataSectionHandler = lambda: reader.cdata(begins=False)
    before, inside = b"<answer>", _DECLARATION.sub("", source).encode("utf-8", "replace")
    try:
        # No document type is possible inside an element, so entities cannot be declared.
        parser.Parse(b"%b%b</answer>" % (before, inside), True)
    except expat.ExpatError:
        ends_early = parser.ErrorByteIndex >= len(before) + len(inside)
        fault = ErrorCode.TRUNCATED if ends_early else ErrorCode.MALFORMED_BY_PROVIDER
        raise UnreadableCalls(fault, _xml_calls_name_in(source)) from None
    (answer,) = reader.root.children
    if answer.text:
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER, _xml_calls_name_in(source))
    return answer.children


def _xml_calls_calls_in(source: str, schemas: Schemas) -> list[JsonObject]:
    if _XML_CALLS_SIGNS.search(source) is None:
        return []
    calls: list[JsonObject] = []
    for element in _parsed(source):
        for tool in element.children if element.tag == "tools" else [element]:
            calls += _calls_of(tool, schemas)
    return calls


def _calls_of(tool: _Element, schemas: Schemas) -> list[JsonObject]:
    """Calls of a `tool` element, with arguments as direct children, in `parameters`, or in `action` elements. Raises
    UnreadableCalls for anything else."""
    if tool.tag != "tool" or tool.text or "name" not in tool.attributes:
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER)
    schema = schemas.get(tool.name) or schemas.get(plain_name(tool.name), {})
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
    """Whether the element is empty and its type has no empty value."""
    return not element.children and not element.text and schema.get("type") not in (None, "string")


def _list(group: Sequence[_Element], schema: JsonObject, function: str) -> JsonValue:
    """Value of a list parameter from `item` elements, JSON, or repeated elements. Raises UnreadableCalls."""
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
        # Unescaped markup in a text value.
        raise UnreadableCalls(ErrorCode.MALFORMED_BY_PROVIDER, function)
    if "properties" not in schema and all(one.tag == _ITEM for one in element.children):
        return [_value(one, {}, function) for one in element.children]
    return _object(element.children, schema, function)


def _xml_calls_name_in(source: str) -> str:
    named = _XML_CALLS_NAME.search(source)
    return named["name"] if named else ""


def _xml_calls_is_complete(source: str) -> bool:
    try:
        _parsed(source)
    except UnreadableCalls:
        return False
    return True


XML_CALLS = CallForm(
    languages=frozenset({"", "xml"}),
    signs=_XML_CALLS_SIGNS,
    is_whole=lambda text: text.startswith(("<tools>", "<tool ", "<?xml")),
    is_complete=_xml_calls_is_complete,
    calls_in=_xml_calls_calls_in,
)
