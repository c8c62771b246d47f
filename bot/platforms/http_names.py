"""Display names on the chat page: which ones can be read, which ones look alike, and a distinct one for each member."""

from __future__ import annotations

import itertools
import unicodedata

import orjson

from bot.platforms.http_feed import ChatFeed
from services.store.http_events import Viewer

_EVENTS_READ = 1000
_CACHED_CHATS = 500
_NAMES_PER_CHAT = 2000

_LOOK_LIKE = {
    "a": "АаΑαɑᴀᎪ",
    "b": "ВвЬьΒβʙᏴ",
    "c": "СсϹϲᴄᏟ",
    "d": "ԁđᴅᎠ",
    "e": "ЕеҽΕεᴇᎬ",
    "f": "Ϝꜰք",
    "g": "ԌɡɢցᏀ",
    "h": "НнҺһΗħʜհᎻ",
    "i": "ІіΙιıɩɪᎥ",
    "j": "ЈјͿϳᴊᎫ",
    "k": "КкΚκᴋᏦ",
    "l": "ӀӏłƚƖǀʟᏞ",
    "m": "МмΜϺᴍᎷ",
    "n": "пΝηɴո",
    "o": "ОоΟοσøᴏՕօ",
    "p": "РрΡρϱᴘᏢ",
    "q": "Ԛԛզ",
    "r": "гᴦʀᎡᏒ",
    "s": "ЅѕꜱՏᏕᏚ",
    "t": "ТтΤτŧᴛᎢ",
    "u": "υʋᴜՍս",
    "v": "ѴѵνᴠᏙ",
    "w": "ԜԝѡωᴡᎳ",
    "x": "ХхΧχ",
    "y": "УуҮүΥγʏᎩ",
    "z": "ΖᴢᏃ",
}
"""Letters of other alphabets, and rare Latin ones, that look like a Latin letter and do not decompose to it. A
selection from the confusable characters of Unicode Technical Standard 39."""
_LATIN = {ord(char): letter for letter, chars in _LOOK_LIKE.items() for char in chars}
_DRAWN_ALIKE = str.maketrans("I1|0", "lllo")
_BLANK = frozenset(
    itertools.chain(
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0),
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xFFF0, 0xFFF9),
        range(0xE0000, 0xE1000),
    )
)
"""Characters that draw nothing although their category does not say so."""


def is_visible(name: str) -> bool:
    """Whether at least one character of `name` draws something by itself."""
    return any(_is_drawn(char) for char in name)


def skeleton(name: str) -> str:
    """`name` reduced so that names which look alike are equal: without case, accents, spaces, punctuation and
    invisible characters, and with letters of other alphabets as the Latin ones that they look like."""
    text = unicodedata.normalize("NFKD", name.translate(_LATIN)).translate(_LATIN).casefold()
    kept = [char for char in text if ord(char) not in _BLANK and _counts(char)]
    return "".join(kept) or "".join(filter(_is_drawn, text))


def skeletons(name: str) -> set[str]:
    """The skeletons of `name` as it is written, and read with `I`, `1` and `|` as `l` and `0` as `o`."""
    return {skeleton(name), skeleton(unicodedata.normalize("NFKC", name).translate(_DRAWN_ALIKE))}


def _is_drawn(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] not in "ZM" and category not in ("Cc", "Cf", "Cs") and ord(char) not in _BLANK


def _counts(char: str) -> bool:
    # Vowel signs of Indic scripts have combining class 0: they make another name, accents do not.
    category = unicodedata.category(char)
    is_sign = category in ("Mn", "Mc") and not unicodedata.combining(char)
    return is_sign or (category[0] != "P" and _is_drawn(char))


class ChatNames:
    """Names under which the members of each chat are shown. The first who speaks under a name in a chat has it, the
    second Ann is shown as `Ann (2)`. The chat's stored events keep this across restarts."""

    def __init__(self, feed: ChatFeed) -> None:
        self._feed = feed
        self._holders: dict[str, dict[str, str]] = {}

    async def shown(self, chat: str, member: str, name: str) -> str:
        """`name`, with a number when it is another member's in `chat`. Raises StoreError."""
        holders = await self._holders_of(chat)
        key = skeleton(name)
        if holders.setdefault(key, member) == member:
            return name
        number = next(n for n in itertools.count(2) if holders.setdefault(f"{key}{n}", member) == member)
        return f"{name} ({number})"

    async def _holders_of(self, chat: str) -> dict[str, str]:
        """Member ids by the skeleton of their names."""
        holders = self._holders.get(chat)
        if holders is not None and len(holders) <= _NAMES_PER_CHAT:
            return holders
        read: dict[str, str] = {}
        for event in await self._feed.newest(chat, _EVENTS_READ, Viewer("", sees_all=True)):
            sender = orjson.loads(event.body).get("sender")
            if sender is not None:
                read.setdefault(skeleton(sender["name"]), sender["id"])
        if self._holders.get(chat) is not holders:
            return self._holders[chat]  # another message of the chat has read them meanwhile
        while len(self._holders) >= _CACHED_CHATS:
            del self._holders[next(iter(self._holders))]
        self._holders[chat] = read
        return read
