"""Plays a conversation with a daemon and records the results."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from ruamel.yaml import YAML

from tests.golden.conversations.aliases import Aliases
from tests.golden.conversations.model_server import ModelServer
from tests.golden.conversations.shared import Shared
from tests.golden.conversations.texts import by_keys, json_by_keys
from tests.golden.conversations.world import World
from tests.harness.forked_processes import a_forked_process

FILES = Path(__file__).parent / "files"
START = "2026-01-05T09:00:00+00:00"
TOKEN = "a-token-of-the-conversations"
_FACTS = frozenset(
    (
        "id",
        "chat",
        "role",
        "member",
        "mentions_bot",
        "mentions",
        "reply_to",
        "kind",
        "model",
        "queued",
        "dies",
        "killed_at",
    )
)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_OUTBOX = "SELECT chat, state, attempts, problem, count(*) AS n FROM outbox GROUP BY 1, 2, 3, 4"
_LOG_ID = re.compile(r"^[0-9a-f]{8}$")
_PATIENCE_SECONDS = 60.0
_BASE: Mapping[str, Any] = {
    "language": "en",
    "timezone": "UTC",
    "chats": {"allow": ["http:*"]},
    "models": [
        {"name": "main", "model": "scripted", "base_url": "{model}/v1", "api_key": "k-for-tests", "attempts": 1}
    ],
    "platforms": {
        "console": {"enabled": "off"},
        "web": {"port": 0, "page": False},
        "http": {"enabled": True, "token": TOKEN, "max_role": "owner"},
    },
    "logging": {"folder": "{home}/logs", "console": "off"},
    "home": "{home}",
}


class Player:
    """A conversation during its play."""

    def __init__(self, conversation: Mapping[str, Any], home: Path, shared: Shared) -> None:
        self._conversation = conversation
        self._home = home
        self._shared = shared
        self._language = str(conversation.get("language", "en"))
        self._aliases = Aliases()
        self._server = ModelServer()
        self._cursors: dict[str, str] = {}
        self._events: list[dict[str, Any]] = []
        self._told_requests = 0
        self._told_messages: list[Any] = []
        self._told_tools = ""
        self._seen_inbox: dict[int, tuple[str, str]] = {}
        self._messages = 0
        self._is_dead = False
        self._client = httpx2.AsyncClient(
            timeout=_PATIENCE_SECONDS, trust_env=False, verify=False, headers={"authorization": f"Bearer {TOKEN}"}
        )
        self._settings_file = home / "bot.yaml"
        self._settings: dict[str, Any] = {}
        start = datetime.fromisoformat(str(conversation.get("clock", START))).astimezone(UTC)
        self._world = World(home / "home", self._settings_file, start)

    async def play(self) -> dict[str, Any]:
        """The recording."""
        await self._server.start()
        try:
            self._server.pages = self._conversation.get("search", {})
            self._aliases.set(self._server.address, "<model>")
            self._aliases.set(str(self._home), "<folder>")
            self._aliases.set(str(FILES), "<files>")
            (self._home / "home").mkdir(exist_ok=True)
            self._write_files(self._conversation.get("files", {}))
            self._settings = _merged(_BASE, {"language": self._language}, self._conversation.get("settings", {}))
            self._write_settings()
            self._unpack_database()
            recorded: dict[str, Any] = {"steps": []}
            self._server.script = list(self._conversation.get("model", []))
            await self._world.start()
            await self._until_known(self._conversation.get("waits_for"))
            await self._world.settle()
            if first := await self._news():
                recorded["steps"].append({"step": "start", **first})
            for step in self._conversation["steps"]:
                async with asyncio.timeout(_PATIENCE_SECONDS * 2):
                    recorded["steps"].append({"step": _title(step), **await self._play(step)})
            recorded |= self._left()
        finally:
            await self._world.stop()
            await self._client.aclose()
            await self._server.stop()
        recorded["calls logged"] = self._call_log()
        return recorded

    async def _until_known(self, function: str | None) -> None:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while function and not self._world.knows(function):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.005)

    async def _play(self, step: Mapping[str, Any]) -> dict[str, Any]:
        self._server.script = list(step.get("model", []))
        answered = await self._take(step)
        if step.get("queued"):
            # Its results may be delayed; the next step that waits for everything records them.
            return answered
        unused, self._server.script = len(self._server.script), []
        return {**answered, **await self._news(), **({"unused answers": unused} if unused else {})}

    async def _take(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Perform the step; returns the HTTP response if it is unusual."""
        match next(iter(step)):
            case "advance":
                await self._advance(_seconds(step["advance"]))
            case "kill" | "restart" as how:
                await (self._world.die() if how == "kill" else self._world.stop())
                await self._restart(step)
            case "edit" | "delete" | "reaction" as kind:
                await self._change(kind, step)
            case "release":
                self._server.release()
                await self._world.settle()
            case "settings":
                self._settings = _merged(self._settings, step["settings"])
                self._write_settings()
                await self._world.reload()
                await self._until_known(step.get("waits_for"))
                await self._world.pass_time(1)
            case "undone":
                await self._leave_undone(step)
            case "choose":
                return await self._choose(step)
            case who:
                return await self._say(who, step)
        return {}

    async def _restart(self, step: Mapping[str, Any]) -> None:
        await self._world.start()
        if "after" in step:
            await self._world.pass_time(_seconds(step["after"]))
        await self._world.settle()

    async def _say(self, who: str, step: Mapping[str, Any]) -> dict[str, Any]:
        unknown = step.keys() - _FACTS - {who}
        assert not unknown, f"unknown fields of a step: {unknown}"
        self._messages += 1
        member = step.get("member", who.lower())
        body = {
            "id": step.get("id", self._new_id()),
            "sender": {"id": member, "name": who, "role": step.get("role", "member")},
            "text": self._filled(step[who]),
            **{name: step[name] for name in ("mentions_bot", "mentions", "kind") if name in step},
        }
        if "reply_to" in step:
            body["reply_to"] = self._referred(step["reply_to"])
        return await self._post(step, body)

    async def _choose(self, step: Mapping[str, Any]) -> dict[str, Any]:
        self._messages += 1
        offered = [
            (event, choice["value"])
            for event in self._events
            for choice in event["choices"]
            if step.get("of", "") in event["text"] and step["choose"] in self._names_of(choice)
        ]
        assert offered, f"nothing offers {step['choose']}"
        event, value = offered[-1]
        body = {
            "id": self._new_id(),
            "sender": {"id": step["by"].lower(), "name": step["by"], "role": step.get("role", "member")},
            "text": value,
            "kind": "choice",
            "reply_to": event["id"],
        }
        return await self._post(step, body)

    def _new_id(self) -> str:
        return f"{'after ' if 'database' in self._conversation else ''}m{self._messages}"

    def _names_of(self, choice: Mapping[str, str]) -> tuple[str, ...]:
        return choice["label"], choice["value"], by_keys(choice["label"], self._language)

    async def _post(self, step: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        chat = step.get("chat", "family")
        if "killed_at" in step:
            await self._post_to_the_doomed(step["killed_at"], chat, body)
            await self._restart(step)
            return {}
        before = len(self._server.requests)
        posting = asyncio.create_task(self._posted(self._world.url, chat, body))
        if "dies" in step:
            await self._moment(step["dies"], before)
            await self._world.die()
            await posting
            await self._restart(step)
            return {}
        answer = await posting
        if not step.get("queued"):
            await self._world.settle()
        elif isinstance(step["queued"], int) and not isinstance(step["queued"], bool):
            await self._server.until(before + step["queued"])
        if answer.status_code != 202:
            return {"status": answer.status_code, "error": answer.json().get("error", {}).get("code")}
        return {"duplicate": True} if answer.json()["duplicate"] else {}

    async def _posted(self, url: str, chat: str, body: Mapping[str, Any]) -> httpx2.Response:
        return await self._client.post(f"{url}/api/v1/chats/{chat}/messages", json=dict(body))

    async def _moment(self, when: Mapping[str, Any], before: int) -> None:
        if "request" in when:
            await self._server.until(before + when["request"])
        else:
            mark = self._home / when["file"]
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not mark.exists():  # noqa: ASYNC110 - a file has no event
                    await asyncio.sleep(0.002)

    async def _post_to_the_doomed(self, faults: str, chat: str, body: Mapping[str, Any]) -> None:
        """Post `body` to a daemon in a separate process, which ends itself with SIGKILL at a fault point."""
        await self._world.stop()
        async with self._doomed(faults) as url:
            with suppress(httpx2.HTTPError):
                await self._posted(url, chat, body)
        # The sender got no response, so it repeats the post.
        await self._world.start()
        await self._posted(self._world.url, chat, body)
        await self._world.settle()
        await self._world.stop()

    @asynccontextmanager
    async def _doomed(self, faults: str) -> AsyncIterator[str]:
        """URL of a daemon on this database that ends itself at a fault point; waits for its end on exit."""
        arguments = (str(self._world.home), str(self._settings_file), self._world.now().isoformat(), f"{faults}=kill")
        async with a_forked_process("tests.golden.conversations.world", *arguments) as process:
            assert process.stdout is not None
            async with asyncio.timeout(_PATIENCE_SECONDS):
                yield (await process.stdout.readline()).decode().strip()
                status = await process.wait()
        assert status == -9, f"{faults} was not reached"

    async def _leave_undone(self, step: Mapping[str, Any]) -> None:
        """Start several turns in a daemon that dies at a fault point, and do not start another daemon."""
        await self._world.stop()
        async with self._doomed(step["undone"]) as url:
            for one in step["messages"]:
                self._messages += 1
                before = len(self._server.requests)
                sender = {"id": one["who"].lower(), "name": one["who"], "role": one.get("role", "member")}
                body = {"id": self._new_id(), "sender": sender, "text": one["text"]}
                with suppress(httpx2.HTTPError):
                    await self._posted(url, one["chat"], body)
                if "dies" in one:
                    await self._moment(one["dies"], before)
        self._is_dead = True

    async def _change(self, kind: str, step: Mapping[str, Any]) -> None:
        self._messages += 1
        of = self._referred(step["of"])
        text = self._filled(step.get("text", ""))
        await self._world.change(kind, step.get("chat", "family"), of, step[kind], text, str(self._messages))
        if not step.get("queued"):
            await self._world.settle()

    async def _advance(self, seconds: float) -> None:
        """Advance the clock, with a stop at each time at which something is due."""
        left = seconds
        while left > 0:
            part = min(left, self._seconds_to_next_moment())
            await self._world.pass_time(part)
            left -= part
            await self._world.settle()

    def _seconds_to_next_moment(self) -> float:
        now_ms = self._world.now().timestamp() * 1000
        due = self._rows("SELECT min(due_ms) AS ms FROM occurrences WHERE state = 'due' AND due_ms > ?", now_ms)
        ends = self._rows("SELECT min(expires_ms) AS ms FROM pending WHERE state = 'open' AND expires_ms > ?", now_ms)
        moments = [row["ms"] for row in (*due, *ends) if row["ms"] is not None]
        return max((min(moments) - now_ms) / 1000, 0.001) if moments else float("inf")

    async def _news(self) -> dict[str, Any]:
        """New replies, reason codes and model requests since the previous step."""
        if self._is_dead:
            return {}
        tables = ("inbox", "http_events", "timers")
        keys = {row["chat"] for table in tables for row in self._rows(f"SELECT DISTINCT chat FROM {table}")}
        chats = {key.split(":", 2)[2] for key in keys}
        replies = [reply for chat in sorted(chats) for reply in await self._replies(chat)]
        told = {"reasons": self._reasons(), "requests": self._requests(), "replies": replies}
        return {name: value for name, value in told.items() if value}

    async def _replies(self, chat: str) -> list[Any]:
        url = f"{self._world.url}/api/v1/chats/{chat}/events"
        told = (await self._client.get(url, params={"after": self._cursors.get(chat, "0"), "wait": "0"})).json()
        self._cursors[chat] = told["cursor"]
        self._events += told["events"]
        for event in told["events"]:
            self._aliases.learn(event["text"])
        return [self._reply(chat, event) for event in told["events"]]

    def _reply(self, chat: str, event: Mapping[str, Any]) -> Any:
        text = by_keys(self._aliases.text(event["text"]), self._language)
        reply: dict[str, Any] = {"text": text.split("\n") if "\n" in text else text}
        if chat != "family":
            reply["chat"] = chat
        if event["type"] == "edited":
            reply["edits"] = self._aliases.text(event["id"])
        if event.get("private_to"):
            reply["to"] = event["private_to"]
        if event.get("reply_to"):
            reply["reply_to"] = self._aliases.text(event["reply_to"])
        if event.get("mentions"):
            reply["mentions"] = event["mentions"]
        if event["choices"]:
            reply["choices"] = [
                {"label": by_keys(one["label"], self._language), "value": self._aliases.text(one["value"])}
                | ({"stays": True} if one.get("stays") else {})
                for one in event["choices"]
            ]
        if event.get("closes"):
            reply["closes"] = self._aliases.value(event["closes"])
        return reply

    def _reasons(self) -> list[str]:
        """Reason code of each new event, and of events whose code has changed."""
        found = []
        for row in self._rows("SELECT id, kind, native_id, sender_name, reason, detail FROM inbox ORDER BY id"):
            now = row["reason"], row["detail"]
            if self._seen_inbox.get(row["id"]) != now:
                self._seen_inbox[row["id"]] = now
                kind = "" if row["kind"] == "message" else f"{row['kind']} "
                detail = _LOG_ID.sub("<id of the log>", self._aliases.text(row["detail"]))
                detail = f" ({detail})" if detail else ""
                found.append(
                    f"{kind}{self._aliases.text(row['native_id'])} of {row['sender_name']}: {row['reason']}{detail}"
                )
        return found

    def _requests(self) -> list[Any]:
        fresh = self._server.requests[self._told_requests :]
        if self._conversation.get("chats_in_any_order"):
            fresh = sorted(fresh, key=lambda one: json.dumps(one["body"]["messages"][1:], sort_keys=True))
        self._told_requests = len(self._server.requests)
        return [self._request(one) for one in fresh]

    def _request(self, request: Mapping[str, Any]) -> Any:
        body = dict(request["body"])
        told = [self._message(one) for one in body.pop("messages")]
        same = 0
        while same < min(len(told), len(self._told_messages)) and told[same] == self._told_messages[same]:
            same += 1
        self._told_messages = told
        shown = [*([f"<the first {same} of the request before>"] if same else []), *told[same:]]
        tools = " ".join(self._shared.tool(one) for one in body.pop("tools", []))
        is_same, self._told_tools = bool(tools) and tools == self._told_tools, tools
        return {
            **({"unscripted": True} if request["unscripted"] else {}),
            **self._aliases.value(body),
            **({"tools": "<as before>" if is_same else tools} if tools else {}),
            "messages": shown,
        }

    def _message(self, message: Mapping[str, Any]) -> Any:
        rest = {name: value for name, value in message.items() if name not in ("role", "content", "tool_calls")}
        content, calls = message.get("content"), message.get("tool_calls")
        if message["role"] == "system" and isinstance(content, str):
            return {"system": self._shared.instructions(content)}
        told: dict[str, Any] = {message["role"]: self._content(content), **self._aliases.value(rest)}
        if calls:
            told["calls"] = [
                self._aliases.text(f"{_of(one, 'name')} {_of(one, 'arguments')} [{one['id']}]") for one in calls
            ]
        return told

    def _content(self, content: Any) -> Any:
        if not isinstance(content, str):
            return self._aliases.value(content)
        self._aliases.learn(content)
        with suppress(ValueError):
            if isinstance(read := json.loads(content), dict | list):
                return json_by_keys(self._aliases.value(read), self._language)
        lines = [self._line(line) for line in self._aliases.text(content).split("\n")]
        return lines if len(lines) > 1 else lines[0]

    def _line(self, line: str) -> Any:
        """A line of a message; function results are JSON in a fence."""
        with suppress(ValueError):
            if line.startswith("{"):
                return json_by_keys(json.loads(line), self._language)
        return by_keys(line, self._language)

    def _left(self) -> dict[str, Any]:
        """Rows at the end."""
        told = {
            "ledger": [self._run(row) for row in self._rows("SELECT * FROM ledger ORDER BY turn_id, key")],
            "outbox": sorted(
                f"{row['chat'].split(':', 2)[2]}: {row['n']} {row['state']}, attempts {row['attempts']}"
                + (f", {by_keys(row['problem'], self._language)}" if row["problem"] else "")
                for row in self._rows(_OUTBOX)
            ),
            "questions": [
                f"{row['chat'].split(':', 2)[2]} {self._aliases.text(_last(row['member']))}: {row['state']}, for "
                f"{(row['expires_ms'] - row['asked_ms']) // 1000} s" + (", answered" if row["answered_by"] else "")
                for row in self._rows("SELECT * FROM pending ORDER BY id")
            ],
            "timers": [self._timer(row) for row in self._rows("SELECT * FROM timers ORDER BY chat, kind, number")],
            "grants": [
                f"{row['function']} {self._aliases.text(row['arguments'])} by {row['given_by_name']}"
                + (", revoked" if row["revoked_ms"] else "")
                for row in self._rows("SELECT * FROM grants ORDER BY id")
            ],
            "script memory": [
                f"{_last(row['owner'])} {row['name']} = {self._aliases.text(row['value'])}"
                for row in self._rows("SELECT owner, name, value FROM script_memory ORDER BY owner, name")
            ],
            "budgets": [
                f"{row['holder'].replace('http:main:', '')} {row['kind']} {row['day']}: {row['used']}"
                for row in self._rows("SELECT * FROM budgets ORDER BY holder, kind, day")
            ],
            "summaries": [row["text"] for row in self._rows("SELECT text FROM summaries ORDER BY chat, part")],
        }  # fmt: skip
        return {name: value for name, value in told.items() if value}

    def _run(self, row: sqlite3.Row) -> str:
        result = json.loads(row["result"]) if row["result"] else {}
        data = self._aliases.value(result.get("data"))
        by = f" for {_last(row['member'])}"
        where = f"{row['path']}, round {row['round']}" if row["path"] == "model" else row["path"]
        arguments = self._aliases.text(row["arguments"])
        shown = f" {json.dumps(data, ensure_ascii=False)}" if data is not None else ""
        return f"{row['function']} {arguments} [{row['effect']}, by {where}{by}] {row['code']}{shown}"

    def _timer(self, row: sqlite3.Row) -> str:
        moments = self._rows(
            "SELECT wall, due_ms, state, problem FROM occurrences WHERE timer_id = ? ORDER BY id", row["id"]
        )
        due = [
            f"{datetime.fromtimestamp(one['due_ms'] / 1000, UTC):%Y-%m-%dT%H:%M:%SZ} {one['state']}"
            + (f" ({by_keys(one['problem'], self._language)})" if one["problem"] else "")
            for one in moments
        ]
        to = f" to {_last(row['private_to'])}" if row["private_to"] else ""
        arguments = self._aliases.text(row["arguments"])
        state = f"{row['state']}, done {row['done']}"
        return (
            f"{row['kind']} {row['number']} of {row['owner_name']}{to} in {row['zone']}: {state}; "
            f"{row['function']} {arguments}; {'; '.join(due)}"
        )

    def _call_log(self) -> list[str]:
        """Entries of the call log: the fields that operators use."""
        told = []
        for file in sorted((self._home / "logs").glob("function_calls.jsonl*")):
            for line in file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                words = [
                    str(entry.get(name)) for name in ("function", "path", "outcome") if entry.get(name) is not None
                ]
                told.append(self._aliases.text(" ".join(words)))
        return told

    def _rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        with closing(sqlite3.connect(f"file:{self._world.database}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            return database.execute(query, values).fetchall()

    def _referred(self, name: str) -> str:
        """`last` is the bot's last message, `last question` its last one with choices; other names are ids."""
        if name == "last":
            return str(self._events[-1]["id"])
        if name == "last question":
            return str(next(one for one in reversed(self._events) if one["choices"])["id"])
        return name

    def _filled(self, text: str) -> str:
        """`{code}` is replaced by the latest code in a message of the bot, `{code 1}` by the first one, and so on."""
        for number, code in enumerate(self._aliases.codes(), 1):
            text = text.replace(f"{{code {number}}}", code)
        return text.replace("{code}", self._aliases.codes()[-1]) if "{code}" in text else text

    def _write_settings(self) -> None:
        places = {"home": str(self._home / "home"), "folder": str(self._home), "files": str(FILES)}
        filled = _filled(self._settings, {**places, "model": self._server.address, "python": sys.executable})
        filled["logging"]["folder"] = str(self._home / "logs")
        with self._settings_file.open("w", encoding="utf-8") as file:
            YAML(typ="safe").dump(filled, file)

    def _write_files(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self._home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("{folder}", str(self._home)), encoding="utf-8")

    def _unpack_database(self) -> None:
        """Restore the database of another daemon from SQL, where `<folder>` is the folder of the conversation."""
        if name := self._conversation.get("database"):
            text = gzip.decompress(Path(name).read_bytes()).decode().replace("<folder>", str(self._home))
            with closing(sqlite3.connect(self._world.database)) as database:
                database.executescript(text)

    def pack_database(self, file: Path) -> None:
        """Dump the database as SQL for `_unpack_database`."""
        with closing(sqlite3.connect(self._world.database)) as database:
            text = "\n".join(database.iterdump()).replace(str(self._home), "<folder>")
        file.write_bytes(gzip.compress(text.encode(), mtime=0))


async def play(conversation: Mapping[str, Any], shared: Shared) -> dict[str, Any]:
    """Play a conversation in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="conversation-") as folder:
        return await Player(conversation, Path(folder).resolve(), shared).play()


def _of(call: Mapping[str, Any], name: str) -> Any:
    return call["function"][name]


def _last(key: str) -> str:
    return key.split(":")[-1]


def _title(step: Mapping[str, Any]) -> str:
    """Short title of the step."""
    head = next(iter(step))
    told = json.dumps(step[head], ensure_ascii=False) if not isinstance(step[head], str) else step[head]
    more = {name: value for name, value in step.items() if name not in (head, "model", "waits_for")}
    return f"{head}: {told}" + (f" {json.dumps(more, ensure_ascii=False)}" if more else "")


def _seconds(text: str) -> float:
    """Seconds of a duration such as `1h30m`."""
    return float(sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", str(text))))


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            old = merged.get(name)
            merged[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _filled(value: Any, places: Mapping[str, str]) -> Any:
    match value:
        case str():
            for name, place in places.items():
                value = value.replace("{" + name + "}", place)
            return value
        case list():
            return [_filled(item, places) for item in value]
        case dict():
            return {name: _filled(item, places) for name, item in value.items()}
        case _:
            return value
