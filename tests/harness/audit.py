"""Invariants after a crash and a restart: compares the test's record with the daemon's database."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing

import psycopg

from bot.database.opening import DATABASE
from config.texts import Texts
from services.store.sqlite.upgrade import damage
from tests.harness.outside import Outside, Sent

_UNKNOWN = Texts().of("en").say("failures.unknown_outcome", name="/pay")


def answers(outside: Outside) -> dict[str, list[str]]:
    """Texts that members saw in reply to each of their messages, by message id."""
    rows = _rows(outside, "SELECT turn_id, native_id FROM inbox WHERE kind != 'timer'")
    turns = {str(turn): str(native_id) for turn, native_id in rows}
    seen: dict[str, list[str]] = {one.id: [] for one in outside.said}
    for sent in outside.visible:
        if _turn(sent) in turns:
            seen[turns[_turn(sent)]].append(sent.text)
    return seen


def said_in_time(outside: Outside) -> dict[str, list[str]]:
    """Texts that members saw for each timer, by its title."""
    rows = _rows(
        outside,
        "SELECT timers.title, inbox.turn_id FROM timers JOIN occurrences ON occurrences.timer_id = timers.id"
        " LEFT JOIN inbox ON inbox.id = occurrences.turn_id",
    )
    seen: dict[str, list[str]] = {str(title): [] for title, _ in rows}
    turns = {str(turn): str(title) for title, turn in rows}
    for sent in outside.visible:
        if _turn(sent) in turns:
            seen[turns[_turn(sent)]].append(sent.text)
    return seen


def to_come(outside: Outside) -> int:
    """Number of timer occurrences that are still due."""
    return len(_rows(outside, "SELECT id FROM occurrences WHERE state = 'due'"))


def status_ids(outside: Outside) -> list[str | None]:
    """Stored native ids of status messages."""
    return [row[0] for row in _rows(outside, "SELECT native_id FROM outbox WHERE key LIKE 'status:%'")]


def expected(text: str) -> list[str]:
    """Expected replies to `text` if no outcome is unknown."""
    words = text.removeprefix("@Rollcall ").removeprefix("/")
    function, _, item = words.partition(" ")
    done = {"pay": [f"Paid for {item}."], "keep": [f"Kept {item}."], "soon": [f"Soon: {item}."]}.get(function, [])
    if text.startswith("/"):
        return done
    return [*done, f"You said {words}."] if text.startswith("@Rollcall ") else []


def in_doubt(answered: list[str]) -> bool:
    """Whether the chat was informed that the outcome is unknown."""
    return _UNKNOWN in answered


def problems(outside: Outside) -> list[str]:
    """All violations, empty if there are none."""
    found = _unanswered(outside) + _effects(outside)
    left = {
        "moments that did not come": "SELECT count(*) FROM occurrences WHERE state != 'fired'",
        "messages that wait": "SELECT count(*) FROM inbox WHERE reason = 'waiting'",
        "messages that were not sent": "SELECT count(*) FROM outbox WHERE state != 'sent'",
    }
    found += [f"{count} {what}" for what, query in left.items() for (count,) in _rows(outside, query) if count]
    heard = Counter(native_id for (native_id,) in _rows(outside, "SELECT native_id FROM history WHERE from_bot = 0"))
    found += [f"{one.id} is {heard[one.id]} times in history" for one in outside.said if heard[one.id] != 1]
    hurt = None if outside.store_url else damage(outside.home / DATABASE)
    return found if hurt is None else [*found, f"the database is damaged: {hurt}"]


def unmarked(outside: Outside) -> set[str]:
    """Keys of messages that the daemon has not marked as sent."""
    return {key for (key,) in _rows(outside, "SELECT key FROM outbox WHERE state != 'sent'")}


def _unanswered(outside: Outside) -> list[str]:
    found: list[str] = []
    seen = answers(outside)
    paid = {effect.item for effect in outside.effects if effect.function == "pay"}
    for one in outside.said:
        wanted, got = expected(one.text), seen[one.id]
        item = one.text.rpartition(" ")[2]
        claimed = f"Paid for {item}." in got
        if [_UNKNOWN if text.startswith("Paid for") else text for text in wanted] != got and wanted != got:
            found.append(f"{one.text!r} was answered by {got}")
        if claimed and item not in paid:
            found.append(f"{item} was not paid for, but it was said")
    return found


def _effects(outside: Outside) -> list[str]:
    paid = Counter(effect.item for effect in outside.effects if effect.function == "pay")
    found = [f"{item} was paid for {count} times" for item, count in paid.items() if count > 1]
    keys: dict[tuple[str, str], set[str]] = {}
    for effect in outside.effects:
        keys.setdefault((effect.function, effect.item), set()).add(effect.key)
    found += [f"{item} has the keys {sorted(several)}" for item, several in keys.items() if len(several) > 1]
    intended = {key for (key,) in _rows(outside, "SELECT key FROM ledger")}
    return found + [f"{effect} was never intended" for effect in outside.effects if effect.key not in intended]


def _turn(sent: Sent) -> str:
    return sent.key.partition(":")[0]


def _rows(outside: Outside, query: str) -> list[tuple[object, ...]]:
    if outside.store_url:
        with psycopg.connect(outside.store_url) as server:
            return server.execute(query.encode()).fetchall()
    with closing(sqlite3.connect(outside.home / DATABASE)) as database:
        return database.execute(query).fetchall()
