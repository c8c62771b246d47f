"""CPU time of the desk in a daemon that receives 50 messages per second.

    python -m benchmarks.desk [--seconds 120] [--rate 50]

A daemon answers commands of ten chats over the HTTP API. In alternate periods an operator's browser shows the overview,
which loads the states every 10 seconds and the plots every 60, or nobody looks. The figure is the difference of the CPU
time, in percent of one core; limit: 3. Exit status 1 if it is higher.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from benchmarks.measuring import REPOSITORY

_MOST_PERCENT = 3.0
_PERIODS = 4
_PASSWORD = "correct horse battery"
_SETTINGS = """\
config_version: 1
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
chats: {{allow: ["*:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0}}
  http: {{enabled: true, token: {token}}}
"""


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _send(http: httpx2.AsyncClient, token: str, rate: int, until: asyncio.Event) -> None:
    number, began = 0, time.monotonic()
    pending: set[asyncio.Task[httpx2.Response]] = set()
    while not until.is_set():
        body = {"id": secrets.token_hex(8), "sender": {"id": "ann", "name": "Ann"}, "text": "/roll 1d6"}
        url, headers = f"/api/v1/chats/c{number % 10}/messages", {"authorization": f"Bearer {token}"}
        task = asyncio.create_task(http.post(url, json=body, headers=headers))
        pending.add(task)
        task.add_done_callback(pending.discard)
        number += 1
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
    await asyncio.gather(*pending, return_exceptions=True)


async def _look(http: httpx2.AsyncClient, seconds: float) -> None:
    await http.get("/desk")
    ends, plots_at = time.monotonic() + seconds, time.monotonic() + 60
    while (left := ends - time.monotonic()) > 0:
        await asyncio.sleep(min(10.0, left))
        (await http.get("/desk/overview/states", headers={"hx-request": "true"})).raise_for_status()
        if time.monotonic() >= plots_at:
            plots_at += 60
            (await http.get("/desk/overview/plots", headers={"hx-request": "true"})).raise_for_status()


async def _measured(pid: int, page: str, address: str, token: str, seconds: float, rate: int) -> dict[str, float]:
    over = asyncio.Event()
    limits = httpx2.Limits(max_connections=50)
    async with (
        httpx2.AsyncClient(base_url=address, trust_env=False, verify=False, timeout=60, limits=limits) as api,
        httpx2.AsyncClient(base_url=address, trust_env=False, verify=False, timeout=60) as desk,
    ):
        form = {"owner": page.partition("owner=")[2], "name": "Ann", "password": _PASSWORD}
        answer = await desk.post("/desk/welcome", data=form, headers={"origin": address})
        if answer.status_code != 303:
            raise RuntimeError(f"the desk answered {answer.status_code}")
        sending = asyncio.create_task(_send(api, token, rate, over))
        await asyncio.sleep(5)
        spent = {True: 0.0, False: 0.0}
        for period in range(_PERIODS):
            is_watched, before = period % 2 == 1, _cpu_seconds(pid)
            await (_look(desk, seconds) if is_watched else asyncio.sleep(seconds))
            spent[is_watched] += _cpu_seconds(pid) - before
        over.set()
        await sending
    wall = seconds * _PERIODS / 2
    return {
        "unwatched_percent": round(100 * spent[False] / wall, 2),
        "watched_percent": round(100 * spent[True] / wall, 2),
        "desk_percent": round(100 * (spent[True] - spent[False]) / wall, 2),
    }


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="length of each of the four periods")
    parser.add_argument("--rate", type=int, default=50, help="messages per second")
    options = parser.parse_args()
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as home:
        file = Path(home) / "bot.yaml"
        file.write_text(_SETTINGS.format(home=home, token=token), encoding="utf-8")
        command = [sys.executable, "-m", "bot", "run", "--config", str(file), "--no-console"]
        with subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            try:
                address = link = ""
                while not link:
                    line = process.stdout.readline()
                    if not line:
                        raise RuntimeError("the daemon did not start")
                    address = found[0] if (found := re.search(r"http://[\d.]+:\d+", line)) else address
                    link = found[0] if (found := re.search(r"http\S+owner=\S+", line)) else ""
                measured = asyncio.run(_measured(process.pid, link, address, token, options.seconds, options.rate))
            finally:
                process.terminate()
                process.wait(timeout=60)
    holds = measured["desk_percent"] <= _MOST_PERCENT
    print(json.dumps({**measured, "limit": _MOST_PERCENT, "holds": holds}))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
