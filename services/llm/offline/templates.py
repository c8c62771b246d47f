"""Example sentences as templates of weighted words and slots, and slot values per JSON Schema."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache

from config.word_tables import phrases
from services.calc.calculator import BadExpression, Problem, calculate
from services.calc.units import Units, UnknownUnit
from services.clock import SystemClock
from services.llm.model import OfferedFunction
from services.llm.offline.utterance import Word, is_number, is_report, number_in, read, with_digits
from services.llm.offline.vocabulary import (
    DESTRUCTIVE,
    FILLERS,
    HAN_NUMBERS,
    HAN_SCALES,
    OPERATORS,
    PREPOSITIONS,
    STATES,
    concepts_of,
)
from services.patterns import lazy_pattern
from services.refs import JsonObject, JsonValue
from services.text_index import is_unspaced, listed, scan, stem, terms
from services.times.places import Places


class SlotKind(StrEnum):
    """Kind of words that a slot takes; decides how its value is found and parsed."""

    CHOICE = "choice"  # a value of an enum
    NUMBER = "number"
    TIME = "time"
    EXPRESSION = "expression"
    LIST = "list"
    UNIT = "unit"  # of measurement
    PLACE = "place"  # with a known time zone
    WHO = "who"  # the group or names
    DICE = "dice"
    FUNCTION = "function"  # a command or the name of a function
    SHORT = "short"  # a few words: a name, a place, a unit
    LONG = "long"  # free text


TYPED = frozenset({SlotKind.CHOICE, SlotKind.NUMBER, SlotKind.TIME, SlotKind.EXPRESSION})
KNOWN = frozenset({SlotKind.UNIT, SlotKind.PLACE, SlotKind.DICE, SlotKind.FUNCTION, SlotKind.WHO})
"""Kinds with a closed set of values: other words are no value."""
SHORT_KINDS = KNOWN | {SlotKind.SHORT}
_TIME_FORMATS = frozenset({"time", "date", "date-time", "duration"})
_TIME_NAMES = frozenset(listed("time times when date day days due at until deadline moment weekday month period"))
_NAMED_KINDS = {
    "unit": SlotKind.UNIT, "units": SlotKind.UNIT, "place": SlotKind.PLACE, "dice": SlotKind.DICE,
    "function": SlotKind.FUNCTION, "who": SlotKind.WHO,
}  # fmt: skip
_EXPRESSION_NAMES = frozenset(listed("expression formula calculation equation sum"))
_LONG_NAMES = frozenset(
    listed("""
    text message title task query item items question note content description body what topic subject reason words
    """)
)
_LONG_LENGTH = 300
"""A string with a larger `maxLength` is free text, regardless of its name."""
_FEWEST_PARTS = 2
"""Fewer parts are no list."""
_EDGES = " \t\n.,;:!?\"'`“”‘’。，；：！？、"
_CURRENCY = lazy_pattern(r"[$€£¥]\s*(?=\d)")
_PARTS = lazy_pattern(
    r"\s*(?:(?:,|;|/|、|，|；|\n)\s*(?:or\b|and\b)?|\bor\b|\band\b|\bvs\b|\bversus\b|还是|或者|或|和)\s*", re.IGNORECASE
)
_LIST_ENDS = lazy_pattern(
    r"^\s*(?:between|among|either|在|从)\s*|\s*(?:which one|这几个|里面?|之间|中)$", re.IGNORECASE
)
_KIND_FIRST = lazy_pattern(
    r"^(?:an?|one|the)\s+[\w ]+?\s*[,:]\s+(?!(?:an?|the)\s)(?=.*\b(?:or|and)\b|.*,)", re.IGNORECASE
)
_NAME_PARTS = lazy_pattern(r"[^a-z]+")


@dataclass(frozen=True, slots=True)
class Slot:
    """Parameter of a function as a placeholder in examples."""

    name: str
    kind: SlotKind
    required: bool
    schema: JsonObject
    choices: tuple[tuple[str, JsonValue], ...] = ()
    """For CHOICE: written forms with their values, longest first."""
    choice_stems: frozenset[str] = frozenset()
    is_after_break: bool = False
    """Follows a colon in the example."""


def slots_of(parameters: JsonObject) -> dict[str, Slot]:
    """Slots of a function by parameter name, from the JSON Schema of its parameters."""
    required = set(parameters.get("required", ()))
    properties: Mapping[str, JsonObject] = parameters.get("properties", {})
    return {name: _slot(name, schema, required=name in required) for name, schema in properties.items()}


def _slot(name: str, schema: JsonObject, *, required: bool) -> Slot:
    plain = _without_null(schema)
    choices = tuple(sorted(_choices(plain), key=lambda choice: -len(choice[0])))
    stems = frozenset(term for written, _ in choices for term in terms(written) or [written])
    return Slot(name, _kind(name, plain, has_choices=bool(choices)), required, plain, choices, stems)


def _without_null(schema: JsonObject) -> JsonObject:
    """Merge the first branch that is not null of a union or list of types into the schema, recursively."""
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(key, ()):
            if branch.get("type") != "null":
                return {**{k: v for k, v in schema.items() if k != key}, **_without_null(branch)}
    kind = schema.get("type")
    if isinstance(kind, list):
        return {**schema, "type": next((one for one in kind if one != "null"), "string")}
    return schema


def _choices(schema: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    for value in values:
        if isinstance(value, str) and value:
            yield value.lower().replace("_", " "), value
    if schema.get("type") == "boolean":
        yield from (("yes", True), ("true", True), ("on", True), ("no", False), ("false", False), ("off", False))


def _kind(name: str, schema: JsonObject, *, has_choices: bool) -> SlotKind:
    parts = set(_NAME_PARTS.split(name.lower()))
    if parts & _NAMED_KINDS.keys() and schema.get("type") in ("string", "array"):
        return next(kind for word, kind in _NAMED_KINDS.items() if word in parts)
    of_type = {"integer": SlotKind.NUMBER, "number": SlotKind.NUMBER, "array": SlotKind.LIST}.get(
        schema.get("type", "")
    )
    if has_choices:
        return SlotKind.CHOICE
    if of_type is not None:
        return of_type
    if schema.get("format") in _TIME_FORMATS or parts & _TIME_NAMES:
        return SlotKind.TIME
    if parts & _EXPRESSION_NAMES:
        return SlotKind.EXPRESSION
    long = parts & _LONG_NAMES or schema.get("maxLength", 0) > _LONG_LENGTH
    return SlotKind.LONG if long else SlotKind.SHORT


def value_of(raw: str, slot: Slot) -> JsonValue | None:
    """Value of the words `raw` for `slot`, converted to its kind; None if they are empty or the schema does not allow
    it."""
    text = unicodedata.normalize("NFKC", raw).strip(_EDGES)
    if not text:
        return None
    match slot.kind:
        case SlotKind.CHOICE:
            return _choice(text.lower(), slot.choices)
        case SlotKind.NUMBER:
            return _number(text, slot.schema)
        case SlotKind.LIST:
            return _list(text, slot.schema)
        case SlotKind.EXPRESSION:
            return _expression(text)
        case SlotKind.UNIT:
            return _unit(text)
        case SlotKind.PLACE:
            return _place(text)
        case SlotKind.DICE:
            return dice_in(text) or None
        case SlotKind.WHO:
            return _who(text)
        case _:
            text = _in_digits(text)
            longest = slot.schema.get("maxLength")
            return None if longest is not None and len(text) > longest else text


_MONEY = lazy_pattern(
    r"(?<=\d)\s*(?:dollars?|bucks|euros?|块钱|块|元|块錢)|\b(?:an?|the)\s+(?=\d)|\b(?:tip|discount)\b\s*", re.IGNORECASE
)
_TIP_ON = lazy_pattern(r"(?<=[%t])\s+on\s+(?=\d)", re.IGNORECASE)


def _expression(text: str) -> str | None:
    """`text` for the calculator, in digits and without currencies; None if it cannot be calculated."""
    if not _counts_something(text):
        return None
    written = _TIP_ON.sub(" of ", _MONEY.sub("", with_digits(_CURRENCY.sub("", text)))).strip(_EDGES)
    try:
        calculate(written)
    except BadExpression as problem:
        return written if problem.problem in (Problem.DIVISION_BY_ZERO, Problem.TOO_LARGE, Problem.UNDEFINED) else None
    return written


_NUMBERED = lazy_pattern(r"^第?([\d一二两三四五六七八九十]+)(?:号|条|项|个)?$")


def _in_digits(text: str) -> str:
    """A Chinese number as digits; other texts are returned unchanged."""
    text = _NUMBERED.sub(r"\1", text)
    is_number = all(character in HAN_NUMBERS or character in HAN_SCALES for character in text)
    number = number_in(text) if is_number else None
    return text if number is None else f"{number:.0f}"


_EVERYBODY = lazy_pattern(
    r"(?:all of )?(?:us|everyone|everybody|the (?:whole )?(?:group|team|chat)|all)(?: all| here)?"
    r"|(?:群里|全体|我们|咱们)?(?:所有人|大家|全员|全体成员|我们|咱们)|群里(?:的人)?",
    re.IGNORECASE,
)
_NAME_LIST = lazy_pattern(r"\s*(?:,|&|\+|、|，|\band\b|和|跟)\s*", re.IGNORECASE)
_A_NAME = lazy_pattern(r"@?[^\W\d_][\w.-]*(?: [A-Z][\w.-]*)?|@[\w.-]+")


_CHINESE_NICKNAME = lazy_pattern(r"[小老阿][\u4e00-\u9fff]|[\u4e00-\u9fff]{1,2}(?:哥|姐|叔|总|工|老师|经理)")
_GROUP_WORDS = frozenset(
    listed("""
    us everyone everybody all of the whole group team chat here and
    群里 群 所有人 大家 全员 全体 成员 我们 咱们 所 有 人 和 跟
    """)
)


def is_group_word(word: str) -> bool:
    """Whether the lower-case word can be part of words for everybody in the chat."""
    return word in _GROUP_WORDS


def _who(text: str) -> JsonValue | None:
    """Names of people, or `everyone`; None for the asker and other words."""
    if _EVERYBODY.fullmatch(text):
        return ["大家" if is_unspaced(text) else "everyone"]
    names = _NAME_LIST.split(text)
    if any(not _A_NAME.fullmatch(name) or not _is_name(name) for name in names):
        return None
    return [name.removeprefix("@") for name in names]


def _is_name(name: str) -> bool:
    first = read(name).words
    if name.startswith("@"):
        return True
    if name.lower().endswith(("self", "selves")):
        return False
    is_unusual = not any(word.meaning.is_filler or word.is_time or word.meaning.concepts for word in first)
    if is_unspaced(name):
        return is_unusual and _CHINESE_NICKNAME.fullmatch(name) is not None
    return is_unusual and (name[0].isupper() or len(first) == 1)


@lru_cache(maxsize=1)
def _units() -> Units:
    return Units()


@lru_cache(maxsize=1)
def _places() -> Places:
    return Places(SystemClock())


@lru_cache(maxsize=2048)
def _unit(text: str) -> str | None:
    name = _DEGREES.sub("", text)
    for one in (text, name):
        try:
            _units().find(one)
        except UnknownUnit:
            continue
        return one
    return None


_DEGREES = lazy_pattern(r"^(?:degrees?|an?|one)\s+|^(?:个|度)(?=.)", re.IGNORECASE)


_HAS_DIGIT = lazy_pattern(r"\d")


def _place(text: str) -> str | None:
    """The longest part of `text` that is a known place; its first words take precedence."""
    known = _places().known
    if known(text) and not _HAS_DIGIT.search(text):
        return text
    tokens = scan(text)
    for size in range(min(len(tokens), 6), 0, -1):
        for first in range(len(tokens) - size + 1):
            part = text[tokens[first].start : tokens[first + size - 1].end]
            is_short = size == 1 and (len(part) < 3 or part.lower() in FILLERS) and not is_unspaced(part)
            is_short = is_short or (is_unspaced(part) and len(part) < 2) or _HAS_DIGIT.search(part) is not None
            if not is_short and known(part):
                return part
    return None


_DICE = lazy_pattern(r"(?<![a-z\d])(\d{0,3})\s?d\s?(\d{1,4}|%)(?![a-z\d])", re.IGNORECASE)
_DIE_COUNT = lazy_pattern(
    r"(?P<count>\d+(?!\s*(?:-|面|sided))|an?|one|two|three|four|five|six|seven|eight|nine|ten|[一两二三四五六七八九十]+(?=[个颗枚粒只]))"
    r"\s*(?:more\s+)?(?:个|颗|枚|粒|只)?\s*"
    r"(?:(?P<sides>\d+|six|ten|twenty|[一二三四五六七八九十]+)\s*(?:-?\s*sided?|面)\s*(?:的)?\s*)?(?:dice|die|骰子|色子|筛子)",
    re.IGNORECASE,
)
_SIDES = lazy_pattern(
    r"(?P<sides>\d+|six|ten|twelve|twenty|[一二三四五六七八九十]+)\s*(?:-?\s*sided?|面)", re.IGNORECASE
)
_DICE_MORE = lazy_pattern(r"(?:(\+|plus|加上?)|(-|minus|减去?))\s*(\d{1,4})", re.IGNORECASE)


def dice_in(text: str) -> str:
    """Dice notation for the dice that `text` names: `d20 roll plus 4` is `d20+4`, `two dice` `2d6`. Empty if none."""
    found = _DICE.search(text)
    more = _DICE_MORE.search(text)
    rest = "" if more is None else f"{'+' if more[1] else '-'}{more[3]}"
    if found is not None:
        return f"{found[1]}d{found[2]}{rest}"
    counted, sided = _DIE_COUNT.search(text), _SIDES.search(text)
    if counted is None and sided is None:
        return ""
    count = number_in(counted["count"]) if counted else None
    sides = number_in(sided["sides"]) if sided else None
    return f"{int(count or 1)}d{int(sides or 6)}{rest}"


def _counts_something(text: str) -> bool:
    """Whether `text` contains a number with an operator or with another number."""
    words = [token.text for token in scan(text)]
    numbers = sum(is_number(word) for word in words)
    acting = sum(word in OPERATORS and word not in FILLERS for word in words)
    return numbers >= 1 and numbers + acting >= 2


def _choice(text: str, choices: Sequence[tuple[str, JsonValue]]) -> JsonValue | None:
    """Value of the longest choice that occurs in the lower-case `text` as whole words, regardless of inflection; None
    if none does."""
    stems = {stem(word) for word in re.findall(r"\w+", text)}
    for written, value in choices:
        if is_unspaced(written):
            if written in text:
                return value
        elif all(stem(word) in stems for word in written.split()):
            return value
    return None


def _number(text: str, schema: JsonObject) -> JsonValue | None:
    number = number_in(text)
    if number is None:
        return None
    if schema.get("type") == "integer":
        if number != int(number):
            return None
        number = int(number)
    elif number == int(number):
        number = int(number)
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and number < low) or (high is not None and number > high):
        return None
    return number


def _list(text: str, schema: JsonObject) -> JsonValue | None:
    items = schema.get("items", {})
    slot = _slot("item", items, required=True)
    text = _KIND_FIRST.sub("", _LIST_ENDS.sub("", text))
    texts = _PARTS.split(text)
    if len(texts) == 1 and is_unspaced(text):
        texts = text.split()
    parts = [value_of(part, slot) for part in texts if part.strip(_EDGES)]
    known = [part for part in parts if part is not None]
    if len(known) < _FEWEST_PARTS or len(known) != len(parts) or len(known) < schema.get("minItems", 0):
        return None
    return known


_SLOT = re.compile(r"\{(\w+)((?:!|:\w+)*)\}")
"""`{when}`; in phrases also `{when!}`, which must have a value, and `{topic:function}`, a parameter of another kind."""
_FILLER_WEIGHT = 0.12
_TIME_WEIGHT = 0.25
_LEAST_WEIGHT, _SPECIFIC_WEIGHT = 0.4, 0.8
_QUESTION_SHARE = 0.6
_HAN_SHARE = 0.6
"""Weight of a Chinese character relative to an English word: words average two characters."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Word of an example, with its weight in alignments."""

    stem: str
    weight: float
    concepts: frozenset[str]
    is_filler: bool
    is_question: bool
    is_action: bool
    is_negation: bool
    is_preposition: bool
    is_state: bool
    is_key: bool
    """Written with `!` in a phrase: without exactly this word, the message means something else."""
    form: str

    @property
    def tells(self) -> bool:
        """Whether the word is neither a filler nor a question word."""
        return not self.is_filler and not self.is_question


@dataclass(frozen=True, slots=True)
class Template:
    """Example of a function, parsed to literals and slots, with the totals of their weights."""

    function: int
    """Index of the function in the offer."""
    example: str
    items: tuple[Literal | Slot, ...]
    filler_weight: float
    content_weight: float
    content_words: int
    has_slots: bool
    typed_slots: tuple[Slot, ...]
    asks: bool
    """Is a question."""


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """Properties of a function that alignment and scoring need."""

    slots: dict[str, Slot]
    writes: bool
    is_destructive: bool
    """Its name or examples contain a destructive word."""
    reports: bool
    """One of its examples is about the past."""
    own_stems: frozenset[str]
    """Words of its name and words that several examples share; never slot values."""


_phrases = cache(phrases)


def _name_key(text: str) -> tuple[str, ...]:
    return tuple(word.meaning.stem for word in read(text).words if not word.meaning.is_filler)


Examples = Callable[[OfferedFunction], Sequence[str]]
"""The example sentences of a function."""


def own_examples(function: OfferedFunction) -> Sequence[str]:
    """The examples that the function declares."""
    return function.examples


def all_examples(function: OfferedFunction) -> Sequence[str]:
    """The examples that the function declares and, if it is built in, its phrases."""
    return (*function.examples, *_phrases().get(function.original, ())) if function.is_built_in else function.examples


class Lexicon:
    """Word usage across all functions of an offer, for the weights of words, and the facts of each function."""

    def __init__(self, functions: Sequence[OfferedFunction], examples: Examples = own_examples) -> None:
        self._count = len(functions)
        literal_users: defaultdict[str, set[int]] = defaultdict(set)
        self._name_users: defaultdict[str, set[int]] = defaultdict(set)
        self._users: Counter[str] = Counter()
        self.facts: list[FunctionFacts] = []
        for number, function in enumerate(functions):
            in_name = {term for term in terms(function.original.replace("_", " ")) if term.isalpha()}
            by_example = [{word.meaning.stem for word in _literal_words(example)} for example in examples(function)]
            times = Counter(word for words in by_example for word in words)
            in_examples = set(times)
            in_name |= {
                word.meaning.stem
                for command in function.commands
                for word in read(command).words
                if is_unspaced(word.text) and len(word.text) > 1
            }
            own = in_name | {word for word, count in times.items() if count > 1}
            for word in in_name:
                self._name_users[word].add(number)
            for word in in_examples:
                literal_users[word].add(number)
            self._users.update(in_examples | in_name | set(terms(function.description)))
            self.facts.append(_facts(function, examples(function), in_name | in_examples, own))
        self._literal_users = literal_users
        self._functions = {
            key: function.original
            for function in reversed(functions)
            for words in (function.original.replace("_", " "), *function.commands)
            if (key := _name_key(words))
        }

    def function_in(self, text: str) -> tuple[str, str] | None:
        """Registry name of the function that `text` names by its name or a command, and these words; None if none."""
        words = [word for word in read(text).words if not word.meaning.is_filler]
        stems = tuple(word.meaning.stem for word in words)
        for size in range(len(words), 0, -1):
            for first in range(len(words) - size + 1):
                function = self._functions.get(stems[first : first + size])
                if function is not None:
                    return function, " ".join(word.text for word in words[first : first + size])
        return None

    def weight(self, word_stem: str) -> float:
        """Weight of a content word: highest (1.2) if only one function uses it, towards 0.4 the more do."""
        users = max(1, self._users[word_stem])
        specificity = math.log(1 + self._count / users) / math.log(1 + self._count) if self._count else 1.0
        return _LEAST_WEIGHT + _SPECIFIC_WEIGHT * specificity

    def names_another(self, word_stem: str, function: int) -> bool:
        """Whether the word occurs in names of other functions, but not in that of `function`."""
        users = self._name_users.get(word_stem)
        return users is not None and function not in users

    def marks_another(self, word_stem: str, function: int) -> bool:
        """Whether exactly one function uses the word in its examples, and it is not `function`."""
        users = self._literal_users.get(word_stem)
        return users is not None and len(users) == 1 and function not in users


def templates_of(
    functions: Sequence[OfferedFunction], lexicon: Lexicon, examples: Examples = own_examples
) -> Iterator[Template]:
    """Parse the templates of all examples; an example without usable items is skipped."""
    for number, function in enumerate(functions):
        for example in examples(function):
            items = tuple(_items(example, lexicon, lexicon.facts[number].slots))
            literals = [item for item in items if isinstance(item, Literal)]
            slots = [item for item in items if isinstance(item, Slot)]
            content = [literal for literal in literals if literal.tells]
            if items:
                yield Template(
                    function=number,
                    example=example,
                    items=items,
                    filler_weight=sum(literal.weight for literal in literals if not literal.tells),
                    content_weight=sum(literal.weight for literal in content),
                    content_words=len(content),
                    has_slots=bool(slots),
                    typed_slots=tuple(slot for slot in slots if slot.kind in TYPED),
                    asks=read(without_slots(example)).is_question,
                )


def without_slots(example: str) -> str:
    """Words of `example` without placeholders."""
    return _SLOT.sub(" ", example)


def with_values(example: str, values: dict[str, str]) -> str:
    """`example` with known slots replaced by their values; others are kept as `{name}`."""
    return _SLOT.sub(lambda found: values.get(found[1], found[0]), example)


def _items(example: str, lexicon: Lexicon, slots: dict[str, Slot]) -> Iterator[Literal | Slot]:
    """Literals and slots in order; placeholders without a parameter are omitted."""
    parts = _SLOT.split(example)
    literals = [_words_of(part) for part in parts[::3]]
    only_time = all(word.is_time or word.meaning.is_filler for words in literals for word in words)
    for place, words in enumerate(literals):
        text = unicodedata.normalize("NFKC", parts[place * 3]).strip()
        for word in words:
            is_key = text[word.end : word.end + 1] == "!"
            yield _literal(word, lexicon, by_the_way=word.is_time and not only_time, is_key=is_key)
        name, marks = parts[place * 3 + 1 : place * 3 + 3] or ("", "")
        if name in slots:
            yield replace(_marked(slots[name], marks), is_after_break=text.endswith((":", "：")))


def _marked(slot: Slot, marks: str) -> Slot:
    """The slot as a phrase restricts it."""
    kind = marks.strip("!").removeprefix(":")
    if "!" in marks or slot.kind is SlotKind.WHO:
        slot = replace(slot, required=True)
    return replace(slot, kind=SlotKind(kind)) if kind else slot


def _literal(word: Word, lexicon: Lexicon, *, by_the_way: bool, is_key: bool) -> Literal:
    """Literal for `word` with its weight. `by_the_way`: the word is an incidental time, so it counts as a filler."""
    meaning = word.meaning
    weight = _FILLER_WEIGHT if meaning.is_filler else lexicon.weight(meaning.stem)
    if by_the_way:
        weight = min(weight, _TIME_WEIGHT)
    if meaning.is_question:
        weight *= _QUESTION_SHARE
    if word.size < 1:
        weight *= _HAN_SHARE
    return Literal(
        stem=meaning.stem,
        weight=weight,
        concepts=meaning.concepts,
        is_filler=meaning.is_filler or by_the_way,
        is_question=meaning.is_question,
        is_action=meaning.is_action,
        is_negation=meaning.is_negation,
        is_preposition=word.text in PREPOSITIONS,
        is_state=word.text in STATES,
        is_key=is_key,
        form=meaning.form,
    )


@lru_cache(maxsize=2048)
def _words_of(part: str) -> tuple[Word, ...]:
    """Words of an example or a part of it; cached, because reloads rebuild the index from nearly the same examples."""
    return read(part).words


def _literal_words(example: str) -> Iterable[Word]:
    return (word for part in _SLOT.split(example)[::3] for word in _words_of(part) if word.text not in FILLERS)


def _facts(function: OfferedFunction, examples: Sequence[str], stems: set[str], own: set[str]) -> FunctionFacts:
    takes_away = {stem(word) for word in DESTRUCTIVE}
    concepts = {concept for word in stems for concept in concepts_of(word)}
    return FunctionFacts(
        slots=slots_of(function.parameters),
        writes=function.writes,
        is_destructive=bool(stems & takes_away) or "remove" in concepts,
        reports=any(is_report(example) for example in examples),
        own_stems=frozenset(own),
    )
