"""Direct commands: parsing of words into arguments by the function's schema, usage lines and argument errors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from config.texts import Phrases
from function_calls.spec import ArgumentError, FunctionSpec
from services.refs import JsonObject, Role
from services.text_index import is_unspaced

_QUOTES = {'"': '"', "“": "”", "„": "“", "「": "」", "『": "』", "«": "»", "'": "'"}
_COMMAS = re.compile("[,，、]")
_FUNCTION_WORDS = (
    "is are was were will would can could should do does did has have had am be been the a an this that these those "
    "my your his her our their its me us him them it you we they i to of up off out over in on at for from with about "
    "by as if and or but so then than not no there here again now"
)
_GO_ON_A_SENTENCE = frozenset(_FUNCTION_WORDS.split())
_WORDS_OF_SENTENCES = (
    "is are was were am isn't aren't wasn't weren't has have had hasn't haven't does did doesn't didn't will would can "
    "could should must won't can't never always often too very i we he she they me us him them myself yourself himself "
    "everybody everyone nobody"
)
_IN_SENTENCES_ONLY = frozenset(_WORDS_OF_SENTENCES.split())
"""Words that hardly occur in arguments, wherever they stand."""
_ENDS_OF_A_QUESTION = ("?", "？", ":", "：")
_NUMERIC = re.compile(r"[+-]?\d+(\.\d+)?")
_MARKS = re.compile(f"[={''.join(_QUOTES)}]")
_WORDS = re.compile(r"\S+")
_PLAIN_WORD = re.compile(rf"[^\s={''.join(_QUOTES)}]+")


class Token(NamedTuple):
    """A word or quoted text of a command line."""

    text: str
    start: int
    end: int
    quoted: bool
    key: str = ""
    """Parameter name of the form `key=value`."""


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """Rules for parsing a function's command line, computed once per function."""

    order: tuple[tuple[str, JsonObject], ...]
    """Positional parameters: required ones first, each group in the order of the schema."""
    schemas: Mapping[str, JsonObject]
    """All parameters; each can be given by name."""
    names: frozenset[str]
    required: frozenset[str]
    sole_text: str
    """Text parameter that takes the whole line: the only parameter, or the declared one; or empty."""
    sole_word: str
    """Name of a sole parameter that takes a single word, used without tokenizing; or empty."""


def plan_for(spec: FunctionSpec) -> CommandPlan:
    """Plan for the parameters of `spec`: required ones first, and only those of `positional` by position if it is set.
    A single parameter may take the rest of the line."""
    properties: Mapping[str, JsonObject] = spec.parameters["properties"]
    required = spec.parameters["required"]
    order = [name for name in properties if name in required] + [name for name in properties if name not in required]
    sole = order[0] if len(order) == 1 else ""
    if spec.command.positional:
        order = [name for name in order if name in spec.command.positional]
    takes_text = bool(sole) and is_free_text(properties[sole])
    takes_word = bool(sole) and not takes_text and properties[sole].get("type") != "array"
    return CommandPlan(
        order=tuple((name, properties[name]) for name in order),
        schemas=properties,
        names=frozenset(properties),
        required=frozenset(required),
        sole_text=spec.command.line or (sole if takes_text else ""),
        sole_word=sole if takes_word else "",
    )


def is_command_word(word: str) -> bool:
    """Whether `word` is a valid command word: without control, zero-width or other invisible characters."""
    return bool(word) and ((word.isascii() and word.isprintable()) or _is_visible(word))


def is_speech(rest: str) -> bool:
    """Whether the text after a bare command word reads like the rest of a sentence (`weather is nice today`, `pick up
    the kids?`, `weather forecasts are always wrong`) rather than like arguments."""
    words = rest.casefold().replace("’", "'").split()
    return (
        rest.rstrip().endswith(("?", "？"))
        or (bool(words) and words[0] in _GO_ON_A_SENTENCE)
        or not _IN_SENTENCES_ONLY.isdisjoint(words)
    )


def _is_visible(word: str) -> bool:
    return not any(unicodedata.category(character)[0] == "C" for character in word)


def arguments_of(plan: CommandPlan, line: str) -> dict[str, Any]:
    """Raw arguments by name in `line`, the part after the command word; empty for an empty line. A text parameter takes
    the words that typed parameters leave. Raises ArgumentError for surplus words and for values given twice."""
    line = line.strip()
    if not line:
        return {}
    if plan.sole_text and not _names_parameters(plan, line):
        return {plan.sole_text: _whole(plan, line)}
    if plan.sole_word and (line.isalnum() or _PLAIN_WORD.fullmatch(line)):
        return {plan.sole_word: line}
    tokens = _tokens(line, plan.names)
    arguments = _named([token for token in tokens if token.key], plan.schemas)
    words = [token for token in tokens if not token.key]
    parameters = [(name, schema) for name, schema in plan.order if name not in arguments]
    _fill(arguments, parameters, words, line, plan.required)
    return arguments


def _names_parameters(plan: CommandPlan, line: str) -> bool:
    """Whether a line for a function with several parameters contains `name=`, so that it is tokenized."""
    if len(plan.order) == 1 or "=" not in line:
        return False
    return any(token.key for token in _tokens(line, plan.names))


def _named(tokens: Sequence[Token], schemas: Mapping[str, JsonObject]) -> dict[str, Any]:
    """Arguments of the form `key=value`, by name; those of array type as lists. Raises ArgumentError for a name used
    twice."""
    arguments: dict[str, Any] = {}
    for token in tokens:
        schema = schemas[token.key]
        if token.key in arguments:
            raise ArgumentError({token.key: schema})
        arguments[token.key] = _items([token]) if schema.get("type") == "array" else token.text
    return arguments


def _whole(plan: CommandPlan, line: str) -> str:
    """The line as one value, without `name=` before it and one pair of quotes around it."""
    name, equals, value = line.partition("=")
    if equals and name == plan.sole_text:
        line = value.strip()
    closing = _QUOTES.get(line[:1])
    if closing is not None and len(line) > 1 and line[-1] == closing and line.count(closing) <= 2:
        return line[1:-1]
    return line


def _tokens(line: str, names: frozenset[str]) -> list[Token]:
    if not _MARKS.search(line):
        return [Token(word[0], *word.span(), quoted=False) for word in _WORDS.finditer(line)]
    tokens: list[Token] = []
    position, length = 0, len(line)
    while position < length:
        if line[position].isspace():
            position += 1
            continue
        start = position
        key = ""
        for name in names:
            if line.startswith(name, position) and line[position + len(name) : position + len(name) + 1] == "=":
                key = name
                position += len(name) + 1
                break
        closing = _QUOTES.get(line[position]) if position < length else None
        end = line.find(closing, position + 1) if closing else -1
        if end > position and (end + 1 == length or line[end + 1].isspace()):
            tokens.append(Token(line[position + 1 : end], start, end + 1, quoted=True, key=key))
            position = end + 1
            continue
        end = position
        while end < length and not line[end].isspace():
            end += 1
        tokens.append(Token(line[position:end], start, end, quoted=False, key=key))
        position = end
    return tokens


def _fill(
    arguments: dict[str, Any],
    parameters: Sequence[tuple[str, JsonObject]],
    words: list[Token],
    line: str,
    required: frozenset[str],
) -> None:
    for index, (name, schema) in enumerate(parameters):
        if not words:
            return
        rest = parameters[index + 1 :]
        if schema.get("type") == "array":
            used = words if not rest else words[: max(1, len(words) - _words_needed(rest, words, required))]
            arguments[name] = _items(used)
            words = words[len(used) :]
        elif is_free_text(schema):
            count = _text_length(words, rest, required)
            arguments[name] = _joined(words[:count], line)
            words = words[count:]
        elif _fits(schema, words[0]) or name in required or not _could_wait(rest, words[0]):
            arguments[name] = words[0].text
            words = words[1:]
    if words:
        raise ArgumentError({word.text: None for word in words})


def _text_length(words: Sequence[Token], rest: Sequence[tuple[str, JsonObject]], required: frozenset[str]) -> int:
    """Number of `words` that a text takes before the parameters in `rest`. A quoted text is complete; a question before
    a list ends at its question mark or colon; any other text takes the words that the rest leaves."""
    if words[0].quoted:
        return 1
    if rest and rest[0][1].get("type") == "array":
        ends = [place for place, word in enumerate(words[:-1], 1) if word.text.endswith(_ENDS_OF_A_QUESTION)]
        if ends:
            return ends[0]
    return max(1, len(words) - _words_needed(rest, words, required))


def _items(words: Sequence[Token]) -> list[str]:
    """Words as a list: split at commas if there are any, otherwise one item per word. Quoted texts are not split."""
    if not any(_COMMAS.search(word.text) for word in words if not word.quoted):
        return [word.text for word in words]
    items: list[str] = []
    together: list[str] = []
    for word in [*words, Token("", 0, 0, quoted=True)]:
        if not word.quoted:
            together.append(word.text)
            continue
        items += [part.strip() for part in _COMMAS.split(" ".join(together)) if part.strip()]
        together = []
        items += [word.text] if word.text else []
    return items


def _words_needed(
    parameters: Sequence[tuple[str, JsonObject]], words: Sequence[Token], required: frozenset[str]
) -> int:
    """Number of words at the end that belong to `parameters`, read from the right. A typed parameter takes a word that
    fits, a text parameter a quoted one, or any word if it is required or there is exactly one word per parameter."""
    one_each = len(words) == len(parameters) + 1
    needed = 0
    for name, schema in reversed(parameters):
        if needed >= len(words) - 1:
            break
        word = words[len(words) - 1 - needed]
        if is_free_text(schema):
            needed += word.quoted or one_each or name in required
        elif name in required or "enum" not in schema:
            # An optional enum value may also be the end of the text, so it must be named with `name=`.
            needed += _fits(schema, word)
    return needed


def _could_wait(rest: Sequence[tuple[str, JsonObject]], word: Token) -> bool:
    """Whether a later parameter accepts the word that this one rejects."""
    return any(_fits(schema, word) for _, schema in rest)


def _fits(schema: JsonObject, word: Token) -> bool:
    if "enum" in schema:
        return any(str(allowed).casefold() == word.text.casefold() for allowed in schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return bool(_NUMERIC.fullmatch(word.text))
    if kind == "boolean":
        return word.text.casefold() in ("yes", "no", "true", "false", "on", "off")
    return True


def is_free_text(schema: JsonObject) -> bool:
    """Whether the values of `schema` are texts of any kind."""
    return schema.get("type", "string") == "string" and "enum" not in schema


def _joined(words: Sequence[Token], line: str) -> str:
    """The words with their original white space from `line`; a single space where there was none."""
    if len(words) == 1:
        return words[0].text
    joined = line[words[0].start : words[0].end]
    for before, word in pairwise(words):
        between = line[before.end : word.start]
        joined += (between if between.isspace() else " ") + line[word.start : word.end]
    return joined


def value_of(schema: JsonObject, text: str) -> Any:
    """Raw value of a parameter for a typed answer: a list for arrays, else the text."""
    if schema.get("type") != "array":
        return text
    return _items(_tokens(text, frozenset()))


_JOINTS = re.compile(r"[._\s]+")


def spoken_name(spec: FunctionSpec, language: str) -> str:
    """Display name of the function: its command, if possible in the chat's language, else its name as words."""
    if not spec.command.words:
        return plain_name(spec.name)
    is_chinese = language == "zh"
    fitting = (word for word in spec.command.words if is_unspaced(word) == is_chinese)
    return f"/{next(fitting, spec.command.words[0])}"


HEADINGS: Mapping[str, frozenset[str]] = {
    "remind": frozenset({"reminder"}),
    "plan": frozenset({"todo", "schedules"}),
    "find_out": frozenset({"time", "numbers", "web"}),
    "decide": frozenset({"poll"}),
    "have_fun": frozenset({"chance"}),
    "this_chat": frozenset({"chat", "tools"}),
    "more": frozenset(),
}
"""Headings of the help in their order, and the tags that belong to them. A heading's own name is a tag as well, and
takes precedence."""


def heading_of(spec: FunctionSpec) -> str:
    """Heading of the help for the function, by its tags; `more` if no tag belongs to a heading."""
    tags = spec.origin.tags
    named = next((heading for heading in HEADINGS if heading in tags), None)
    return named or next((heading for heading, others in HEADINGS.items() if not others.isdisjoint(tags)), "more")


def example_sentences(heading: str, texts: Phrases) -> dict[str, str]:
    """Example sentences of the heading by the name of a built-in function, in the order of the texts."""
    start = f"help.examples.{heading}."
    return {key.removeprefix(start): text for key, text in texts.templates.items() if key.startswith(start)}


def by_heading(functions: Sequence[FunctionSpec], texts: Phrases) -> dict[str, list[FunctionSpec]]:
    """All headings with their functions; those with an example sentence come first, in its order."""
    found: dict[str, list[FunctionSpec]] = {}
    for heading in HEADINGS:
        place = {name: number for number, name in enumerate(example_sentences(heading, texts))}
        places = {spec: place.get(spec.name, len(place)) for spec in functions if heading_of(spec) == heading}
        found[heading] = sorted(places, key=places.__getitem__)
    return found


def role_name(role: Role | None, texts: Phrases) -> str:
    """Name of the role for members; empty for None."""
    return texts.say(f"roles.names.{role.value}") if role else ""


def about(spec: FunctionSpec, texts: Phrases) -> str:
    """Description of the function for members: from the texts if it is built in, else the author's."""
    key = f"functions.about.{spec.name}"
    return texts.say(key) if spec.origin.built_in and texts.has(key) else spec.description


def short_about(spec: FunctionSpec, texts: Phrases) -> str:
    """First sentence of `about`, without its full stop."""
    return about(spec, texts).split(". ")[0].rstrip(".")


def done_text(functions: Iterable[FunctionSpec | str], texts: Phrases) -> str:
    """Text that functions without own messages have run; empty for no functions. A name is used for a function that no
    longer exists."""
    spoken = (plain_name(one) if isinstance(one, str) else spoken_name(one, texts.language) for one in functions)
    names = ", ".join(dict.fromkeys(spoken))
    return texts.say("claims.done", names=names) if names else ""


def plain_name(name: str) -> str:
    """Name of a function that no longer exists or has no command, as words."""
    return _JOINTS.sub(" ", name).strip() or name


def usage_line(spec: FunctionSpec, language: str = "en") -> str:
    """`/weather <city> [days]` with the command in `language` if possible, in the order of positional parameters;
    parameters that must be named come last, as `[days=…]`. For a function without commands, its name."""
    if not spec.command.words:
        return spec.name
    required = spec.parameters["required"]
    properties = [spec.command.line] if spec.command.line else spec.parameters["properties"]
    order = [name for name in properties if name in required] + [name for name in properties if name not in required]
    by_name = [name for name in order if spec.command.positional and name not in spec.command.positional]
    shown = [(name, name) for name in order if name not in by_name] + [(name, f"{name}=…") for name in by_name]
    parts = [f"<{text}>" if name in required else f"[{text}]" for name, text in shown]
    return " ".join([spoken_name(spec, language), *parts])


KIND = "x-said-as"
"""Key in the schema of an argument error: the entry of `arguments.kinds` in the texts that describes valid forms."""


def allowed(schema: JsonObject, texts: Phrases) -> str:
    """Description of valid values in words: `a whole number from 1 to 7`, `one of low, normal, high`; a text if the
    schema says nothing else."""
    if "enum" in schema:
        return texts.say("arguments.one_of", values=", ".join(str(value) for value in schema["enum"]))
    if "const" in schema:
        return texts.say("arguments.one_of", values=str(schema["const"]))
    if KIND in schema:
        return texts.say(f"arguments.kinds.{schema[KIND]}")
    variants = [one for one in schema.get("anyOf") or schema.get("oneOf") or () if isinstance(one, dict)]
    if variants:
        return texts.say("arguments.or").join(dict.fromkeys(allowed(one, texts) for one in variants))
    kind = schema.get("type")
    words = texts.say(f"arguments.{kind}") if isinstance(kind, str) and texts.has(f"arguments.{kind}") else ""
    low, high = _bound(schema, "minimum", "minItems", "minLength"), _bound(schema, "maximum", "maxItems", "maxLength")
    if kind in ("integer", "number"):
        return _ranged(words, low, high, texts)
    if kind == "array" and (low is not None or high is not None):
        return texts.say("arguments.list_of", low=low or 0, high=high if high is not None else "…")
    if kind == "string" and high is not None:
        return texts.say("arguments.text_up_to", high=high)
    return words or texts.say("arguments.string")


def fault_text(spec: FunctionSpec, fault: ArgumentError, texts: Phrases) -> str:
    """Description of each argument error, and the usage line if the function has a command."""
    lines = [_problem_text(name, schema, texts) for name, schema in fault.problems.items()]
    lines += [texts.say("arguments.missing", name=name) for name in fault.missing]
    usage = [texts.say("arguments.usage", usage=usage_line(spec))] if spec.command.words else []
    return "\n".join([*lines, *usage])


def _problem_text(name: str, schema: JsonObject | None, texts: Phrases) -> str:
    if name:
        if schema is None:
            return texts.say("arguments.no_such", name=name)
        return texts.say("arguments.wrong", name=name, allowed=allowed(schema, texts))
    schema = schema or {}
    variants = [one.get("required") for one in schema.get("anyOf") or () if isinstance(one, dict)]
    if variants and all(variants):
        sets = [" + ".join(map(str, names)) for names in variants if names]
        return texts.say("arguments.one_missing", names=", ".join(dict.fromkeys(sets)))
    if "minProperties" in schema:
        return texts.say("arguments.more_needed", count=schema["minProperties"])
    given = ", ".join(map(str, schema.get("x-given", ())))
    return texts.say("arguments.together", names=given) if given else texts.say("arguments.unusable")


def _bound(schema: JsonObject, *keys: str) -> object | None:
    return next((schema[key] for key in keys if key in schema), None)


def _ranged(words: str, low: object | None, high: object | None, texts: Phrases) -> str:
    if low is not None and high is not None:
        return texts.say("arguments.between", kind=words, low=low, high=high)
    if low is not None:
        return texts.say("arguments.at_least", kind=words, low=low)
    if high is not None:
        return texts.say("arguments.at_most", kind=words, high=high)
    return words
