"""Words of Chinese, German, Spanish and French for the subjects of the built-in functions, with the English terms that
function definitions use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from config.word_tables import word_tables
from services.text_index import STOP_WORDS, is_unspaced, listed, terms

_FREQUENT = frozenset(
    listed("""
    der die das den dem des ein eine einen einem einer und oder ist sind war ich du er sie es wir ihr mich mir
    dich dir uns euch mein meine meinen dein nicht kein keine zu zum zur von vom mit auf fur aus bei nach um am im
    wie was wer wo wann welche welcher welches warum mal bitte noch schon auch nur jetzt heute morgen wird haben
    habe hast kann kannst alle el la los las un una unos unas y o de del al en con por para que como cuando donde
    quien cual es son esta estan hay mi mis tu tus su se me te lo le nos no si mas ya hoy manana ahora todos todas
    tengo tienes puedes quiero favor le les un une des du de et ou est sont dans sur avec pour par au aux que qui
    quoi quand comment combien quel quelle quels quelles je tu il elle on nous vous ils mon ma mes ton ta tes ce
    cet cette ces ne pas plus deja demain maintenant aujourd hui moi toi ca fait peux veux as ai
    """)
)
"""Frequent words of German, Spanish and French, without accents."""
_WORD = re.compile(r"[^\W\d_]+")
_SHORTEST_STEM = 3
_LONGEST_HAN = 4


def _is_english(words: Sequence[str]) -> bool:
    """Whether more of `words` are frequent in English than in the other languages with Latin letters."""
    english = sum(word in STOP_WORDS for word in words)
    return english > sum(word in _FREQUENT for word in words)


def english_terms(text: str, is_known: Callable[[str], bool]) -> list[str]:
    """English index terms of the subjects that the words of `text` name, without duplicates; empty for English texts.
    Chinese words that `is_known` accepts are found without a translation, and left out."""
    exact, stems = _table()
    found: dict[str, None] = {}
    words = _WORD.findall(_folded(text))
    if _is_english(words):
        return []
    for word in words:
        if is_unspaced(word):
            pieces = (word[at : at + size] for size in range(1, _LONGEST_HAN + 1) for at in range(len(word) - size + 1))
            for piece in pieces:
                if piece in exact and not is_known(piece):
                    found.update(exact[piece])
            continue
        found.update(exact.get(word, {}))
        for size in range(_SHORTEST_STEM, len(word) + 1):
            found.update(stems.get(word[:size], {}))
    return list(found)


def _folded(text: str) -> str:
    """`text` in lower case and without accents."""
    parts = unicodedata.normalize("NFKD", text.lower().replace("ß", "ss"))
    return "".join(one for one in parts if not unicodedata.combining(one))


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, dict[str, None]], dict[str, dict[str, None]]]:
    """English terms by word, and by the beginning of words."""
    exact: dict[str, dict[str, None]] = {}
    stems: dict[str, dict[str, None]] = {}
    for line in word_tables("translations")["subjects"]:
        english, _, words = line.partition(":")
        targets = dict.fromkeys(terms(english))
        for word in words.replace("|", " ").split():
            by_word = stems if word.endswith("-") else exact
            by_word.setdefault(word.removesuffix("-"), {}).update(targets)
    return exact, stems
