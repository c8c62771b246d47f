"""What a server says of itself: how it compares names, which modes it has, how long things may be (ISUPPORT)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bot.platforms.irc_wire import LINE_BYTES

_HEX = re.compile(r"\\x([0-9A-Fa-f]{2})")
_FOLDS = {
    "ascii": str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"),
    "rfc1459": str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ[]\\~", "abcdefghijklmnopqrstuvwxyz{}|^"),
    "rfc1459-strict": str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ[]\\", "abcdefghijklmnopqrstuvwxyz{}|"),
}
_USUAL_HOST_BYTES = 63
_USUAL_USER_BYTES = 11
_SHORTEST_LINE, _LONGEST_LINE = 256, 65_536


class Features:
    """One server's features; what it does not mention is as RFC 1459 has it."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}

    def learn(self, tokens: Sequence[str]) -> None:
        """Take the words of one ISUPPORT reply, without the nick before and the sentence after them."""
        for token in tokens:
            name, _, value = token.partition("=")
            if name.startswith("-"):
                self._tokens.pop(name[1:].upper(), None)
            elif name:
                self._tokens[name.upper()] = _HEX.sub(lambda found: chr(int(found[1], 16)), value)

    def fold(self, name: str) -> str:
        """`name`, a nick or channel, in the form in which equal ones are equal."""
        fold = _FOLDS.get(self._tokens.get("CASEMAPPING", "rfc1459").lower())
        # Networks with other rules compare more of Unicode; folding more than they do could mix up two people.
        return name.translate(fold or _FOLDS["ascii"])

    def is_channel(self, target: str) -> bool:
        """Whether `target` is a channel."""
        return bool(target) and target[0] in self._tokens.get("CHANTYPES", "#&")

    def channel_of(self, target: str) -> tuple[str, bool]:
        """The channel in `target`, and whether only some of its members are meant (`@#channel`); else `target`."""
        stripped = target.lstrip(self._tokens.get("STATUSMSG", ""))
        if stripped != target and self.is_channel(stripped):
            return stripped, True
        return target, False

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The modes of members by the signs that stand before their nicks, the mightiest first: `@` is `o`."""
        modes, closed, signs = self._tokens.get("PREFIX", "(ov)@+").lstrip("(").partition(")")
        return dict(zip(signs, modes, strict=False)) if closed else {}

    def changes(self, modes: str, params: Sequence[str]) -> Iterator[tuple[bool, str, str]]:
        """What a MODE of a channel changes: whether it is set, the mode, and its parameter or an empty text."""
        lists, always, when_set, *_ = [*self._tokens.get("CHANMODES", "b,k,l,imnpst").split(","), "", "", ""]
        with_param = lists + always + "".join(self.prefixes.values())
        rest = iter(params)
        sets = True
        for mode in modes:
            if mode in "+-":
                sets = mode == "+"
            else:
                has_param = mode in with_param or (sets and mode in when_set)
                yield sets, mode, next(rest, "") if has_param else ""

    @property
    def line_bytes(self) -> int:
        """The longest line with its end, tags apart."""
        return min(max(self._number("LINELEN", LINE_BYTES), _SHORTEST_LINE), _LONGEST_LINE)

    @property
    def nick_bytes(self) -> int:
        """The longest nick."""
        return self._number("NICKLEN", self._number("MAXNICKLEN", 9))

    @property
    def longest_mask_bytes(self) -> int:
        """Of `user@host`, as long as it may be on this server."""
        return self._number("USERLEN", _USUAL_USER_BYTES) + 1 + self._number("HOSTLEN", _USUAL_HOST_BYTES)

    @property
    def joins_at_once(self) -> int:
        """Channels in one JOIN."""
        for target in self._tokens.get("TARGMAX", "").upper().split(","):
            command, colon, most = target.partition(":")
            if command == "JOIN" and colon:
                return min(int(most), 20) if most.isascii() and most.isdigit() and int(most) else 20
        return 1

    @property
    def has_whox(self) -> bool:
        """Whether WHO can tell accounts."""
        return "WHOX" in self._tokens

    @property
    def bot_mode(self) -> str:
        """The user mode that marks a bot; empty when there is none."""
        mode = self._tokens.get("BOT", "")
        return mode if len(mode) == 1 and mode.isalpha() else ""

    @property
    def network(self) -> str:
        """Its name; empty when it says none."""
        return self._tokens.get("NETWORK", "")

    def _number(self, name: str, otherwise: int) -> int:
        value = self._tokens.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 and int(value) > 0 else otherwise
