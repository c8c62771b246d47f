"""Time of a plan over recorded messages: commands, chat replies, calls of a model, and lines that are not addressed.

    python -m benchmarks.plan [--messages 5000] [--data DIR]

A daemon with the built-in functions records the messages in 20 chats; unaddressed lines are those of an IRC corpus, if
it is there. Prints one JSON line; the exit status is 1 above 10 seconds for 5,000 messages.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from random import Random

from benchmarks.measuring import cpu_seconds
from benchmarks.world import set_up_process
from bot.checks.plan import plan
from bot.testing import a_group, call
from config.settings import Settings
from services.refs import ChatRef

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("ROLLCALL_DATA", REPOSITORY.parent / "shared" / "data"))
LINES = Path("F_group_chat", "irc_disentanglement_dev.jsonl.gz")
SECONDS = 10.0
_CHATS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args(arguments)
    set_up_process()
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as folder:
        asyncio.run(_recorded(Path(folder), options.messages, options.data / LINES))
        given = {"home": folder, "chats": {"allow": ["*"]}, "timezone": "UTC"}
        current = Settings.model_validate(given)
        new = Settings.model_validate({**given, "functions": {"calculate": {"enabled": False}}})
        began, cpu = time.perf_counter(), cpu_seconds()
        found = plan(current, new, count=options.messages)
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    limit = SECONDS * max(1.0, options.messages / 5000)
    figures = {
        "compared": found.compared,
        "changed": len(found.changes),
        "not_compared": found.not_compared.total(),
        "unlike_recorded": found.unlike_recorded,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "limit": limit,
        "holds": seconds <= limit,
    }
    print(json.dumps(figures))
    return 0 if figures["holds"] else 1


async def _recorded(home: Path, count: int, lines: Path) -> None:
    """Run a daemon that receives `count` messages of four kinds."""
    unaddressed, rng = cycle(_texts(lines)), Random(1)
    async with a_group(home=home, settings={"memory": {"summarise_after_tokens": 0}}) as group:
        for number in range(count):
            chat, kind, who = ChatRef("test", "bot", f"chat{number % _CHATS}"), rng.randrange(4), f"member{number % 7}"
            if kind == 0:
                await group.hear(who, f"/calc {number}*3", chat=chat)
            elif kind == 1:
                await group.hear(who, next(unaddressed), chat=chat)
            elif kind == 2:
                group.model.says(f"Hello number {number}.")
                await group.say(who, f"@Rollcall hello, this is number {number}", chat=chat)
            else:
                run = call("calculate", expression=f"{number}*7")
                effect = call("todo_add", text=f"thing {number}")
                group.model.says(run if number % 2 else effect, f"Number {number} it is.")
                words = f"what is {number}*7?" if number % 2 else f"put thing {number} on the to-do list"
                await group.say(who, f"@Rollcall {words}", chat=chat)
        await group.settle()


def _texts(file: Path) -> Iterator[str]:
    if not file.exists():
        yield from (f"line {number} of nobody in particular" for number in range(100))
        return
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            if text.strip() and not text.startswith("/"):
                yield text


if __name__ == "__main__":
    raise SystemExit(main())
