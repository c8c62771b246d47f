"""Costs of each network in a daemon: memory, CPU time until it is ready, and CPU time while nothing happens.

    python -m benchmarks.network_costs [NETWORK …] [--seconds 60]

Each network runs in a daemon of its own, connected to the fake or real server of the tests, and is compared with a
daemon without networks. Limits: 8 MB of memory in addition to the import of the libraries that the network needs, and
1 % of a core while idle. Exit status 1 if a figure exceeds its limit, if a network did not connect, or if a daemon
without networks imports one of these libraries. Discord needs root: its hosts are redirected to this machine in a mount
namespace.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measuring import REPOSITORY, Figure, resident_megabytes
from tests.fakes import feishu_server, mattermost_server, onebot_server, slack_server, telegram_server
from tests.fakes.discord_server import TOKEN as DISCORD_TOKEN
from tests.fakes.discord_server import Redirection, a_redirected_discord_server
from tests.harness.irc_servers import an_irc_server
from tests.harness.matrix_servers import a_matrix_server
from tests.harness.satori_gateway import TOKEN as SATORI_TOKEN
from tests.harness.satori_gateway import SatoriGateway
from tests.harness.xmpp_servers import PASSWORD, an_xmpp_server

_MOST_MEGABYTES = 8.0
_MOST_IDLE_PERCENT = 1.0
_PATIENCE_SECONDS = 120.0
_SETTLING_SECONDS = 5.0
_SETTINGS = """\
config_version: 1
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
models: []
chats: {{allow: ["*:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0}}
"""

_NO_REDIRECTION = Redirection((), {})


@dataclass(frozen=True, slots=True)
class Setup:
    """A network with its server."""

    settings: str
    """Its account, as YAML without the name of the network."""
    redirection: Redirection = _NO_REDIRECTION


@asynccontextmanager
async def _telegram(_: Path) -> AsyncIterator[Setup]:
    async with telegram_server.FakeTelegram() as server:
        yield Setup(f"{{token: '{telegram_server.TOKEN}', api_url: '{server.url}'}}")


@asynccontextmanager
async def _slack(_: Path) -> AsyncIterator[Setup]:
    async with slack_server.FakeSlack().running() as server:
        tokens = f"bot_token: {slack_server.BOT_TOKEN}, app_token: {slack_server.APP_TOKEN}"
        yield Setup(f"{{{tokens}, api_url: '{server.url}/api/'}}")


@asynccontextmanager
async def _mattermost(_: Path) -> AsyncIterator[Setup]:
    async with mattermost_server.FakeMattermost().running() as server:
        yield Setup(f"{{url: '{server.url}', token: {mattermost_server.TOKEN}}}")


@asynccontextmanager
async def _feishu(_: Path) -> AsyncIterator[Setup]:
    async with feishu_server.FakeFeishu().running() as server:
        app = f"app_id: {feishu_server.APP_ID}, app_secret: {feishu_server.APP_SECRET}"
        yield Setup(f"{{{app}, domain: '{server.url}'}}")


@asynccontextmanager
async def _onebot(_: Path) -> AsyncIterator[Setup]:
    async with onebot_server.OneBotServer().serving() as server:
        yield Setup(f"{{url: '{server.url}', access_token: {onebot_server.TOKEN}}}")


@asynccontextmanager
async def _satori(_: Path) -> AsyncIterator[Setup]:
    gateway = await asyncio.to_thread(SatoriGateway)
    try:
        await gateway.a_network()
        yield Setup(f"{{url: '{gateway.url}', token: {SATORI_TOKEN}}}")
    finally:
        gateway.stop()


@asynccontextmanager
async def _matrix(home: Path) -> AsyncIterator[Setup]:
    server = a_matrix_server(home / "synapse")
    await asyncio.to_thread(server.start)
    try:
        bot = await asyncio.to_thread(server.register_bot)
        yield Setup(f"{{homeserver: '{server.url}', user: '{bot.user}', access_token: {bot.token}}}")
    finally:
        server.stop()


@asynccontextmanager
async def _xmpp(home: Path) -> AsyncIterator[Setup]:
    (home / "prosody").mkdir()
    server = an_xmpp_server(home / "prosody")
    try:
        jid = server.add_user("rollcall")
        yield Setup(f"{{jid: {jid}, password: {PASSWORD}, host: 127.0.0.1, port: {server.port}, tls: none}}")
    finally:
        server.stop()


@asynccontextmanager
async def _irc(home: Path) -> AsyncIterator[Setup]:
    async with an_irc_server("inspircd", home) as server:
        yield Setup(f"{{account: main, host: 127.0.0.1, port: {server.port}, tls: false, channels: [{{name: '#a'}}]}}")


@asynccontextmanager
async def _discord(home: Path) -> AsyncIterator[Setup]:
    async with a_redirected_discord_server(home) as (_, redirection):
        yield Setup(f"{{token: '{DISCORD_TOKEN}'}}", redirection)


NETWORKS: Mapping[str, tuple[Callable[[Path], AbstractAsyncContextManager[Setup]], str]] = {
    "discord": (_discord, "discord"),
    "feishu": (_feishu, "aiohttp"),
    "irc": (_irc, ""),
    "matrix": (_matrix, "nio"),
    "mattermost": (_mattermost, "aiohttp"),
    "onebot": (_onebot, "aiohttp.web"),
    "satori": (_satori, "aiohttp"),
    "slack": (_slack, "slack_sdk.web.async_client"),
    "telegram": (_telegram, "aiohttp"),
    "xmpp": (_xmpp, "slixmpp.plugins.xep_0363.http_upload"),
}
"""Server and library of each network."""


@dataclass(slots=True)
class Costs:
    """Measurements of one daemon."""

    ready_cpu_seconds: float
    ready_seconds: float
    megabytes: float = 0.0
    idle_percent: float = 0.0


async def _measured(home: Path, network: str, setup: Setup, seconds: float) -> Costs:
    """Costs of a daemon, which is idle for `seconds`."""
    home.mkdir()
    log, settings = home / "logs" / "rollcall.jsonl", home / "bot.yaml"
    account = f"  {network}: [{setup.settings}]\n" if network else ""
    settings.write_text(_SETTINGS.format(home=home) + account, encoding="utf-8")
    command = [*setup.redirection.prefix, sys.executable, "-m", "bot", "run", "--config", str(settings), "--no-console"]
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, cwd=REPOSITORY, stdout=subprocess.PIPE, env=os.environ | setup.redirection.environment
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_PATIENCE_SECONDS):
            if not await process.stdout.readline():
                raise RuntimeError(f"the daemon with {network or 'no network'} did not start")
            connected = re.compile('"event":"(irc_)?connected"' if network else '"event":"started"')
            while not (log.exists() and connected.search(log.read_text(encoding="utf-8"))):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        costs = Costs(_cpu_seconds(process.pid), time.perf_counter() - began)
        await asyncio.sleep(_SETTLING_SECONDS)
        before = _cpu_seconds(process.pid)
        await asyncio.sleep(seconds)
        costs.idle_percent = (_cpu_seconds(process.pid) - before) / seconds * 100
        costs.megabytes = resident_megabytes(process.pid)
        return costs
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def imported_megabytes(library: str) -> float:
    """Growth of memory by the import of `library`, after the modules of a daemon without networks."""
    program = (
        "import sys, importlib, warnings; from benchmarks.measuring import resident_megabytes as megabytes; import os\n"
        "warnings.simplefilter('ignore')\n"
        "for name in sys.argv[2].split(): importlib.import_module(name)\n"
        "before = megabytes(os.getpid()); importlib.import_module(sys.argv[1]); print(megabytes(os.getpid()) - before)"
    )
    command = [sys.executable, "-c", program, library, "bot.cli.run bot.wiring bot.web.wiring uvicorn.server"]
    return float(subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout)


def modules_of_a_daemon(home: Path) -> set[str]:
    """Modules that a daemon without networks imports until it is ready."""
    home.mkdir()
    (home / "bot.yaml").write_text(_SETTINGS.format(home=home), encoding="utf-8")
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "bot",
        "run",
        "--config",
        str(home / "bot.yaml"),
        "--no-console",
    ]
    with (home / "imports").open("w+", encoding="utf-8") as imports:
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=imports) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.terminate()
        imports.seek(0)
        return {line.rpartition("|")[2].strip() for line in imports}


async def _run(names: Sequence[str], seconds: float) -> int:
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as folder:
        home = Path(folder)
        imported = await asyncio.to_thread(modules_of_a_daemon, home / "modules")
        unwanted = {library.partition(".")[0] for _, library in NETWORKS.values() if library} & imported
        unwanted |= {f"bot.platforms.{name}.platform" for name in NETWORKS} & imported
        print(json.dumps({"imported without networks": sorted(unwanted)}), flush=True)
        async with AsyncExitStack() as stack:
            setups = {"": Setup("")}
            for name in names:
                (home / name).mkdir()
                setups[name] = await stack.enter_async_context(NETWORKS[name][0](home / name))
            async with asyncio.TaskGroup() as measuring:
                tasks = [
                    measuring.create_task(_measured(home / f"daemon-{name}", name, setup, seconds))
                    for name, setup in setups.items()
                ]
    base, *others = [task.result() for task in tasks]
    all_hold = not unwanted
    print(json.dumps({"network": "none", **{key: round(value, 2) for key, value in asdict(base).items()}}))
    for name, one in zip(names, others, strict=True):
        library = NETWORKS[name][1]
        import_megabytes = imported_megabytes(library) if library else 0.0
        figures = [
            Figure(
                name,
                f"memory, without {import_megabytes:.1f} MB of {library or 'no library'}",
                "megabytes",
                one.megabytes - base.megabytes - import_megabytes,
                _MOST_MEGABYTES,
            ),
            Figure(
                name,
                f"percent of a core while idle (none: {base.idle_percent:.2f})",
                "percent",
                one.idle_percent,
                _MOST_IDLE_PERCENT,
            ),
        ]
        ready = {
            "cpu": round(one.ready_cpu_seconds - base.ready_cpu_seconds, 2),
            "wall": round(one.ready_seconds - base.ready_seconds, 2),
        }
        print(json.dumps({"network": name, "more_seconds_until_connected": ready}))
        for figure in figures:
            print(figure.line(), flush=True)
            all_hold = all_hold and figure.holds
    return 0 if all_hold else 1


def main() -> int:
    """Measure with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"one of: {', '.join(NETWORKS)}; none: all")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each daemon is idle")
    options = parser.parse_args()
    unknown = set(options.networks) - set(NETWORKS)
    if unknown:
        parser.error(f"there is no network {', '.join(sorted(unknown))}")
    return asyncio.run(_run(options.networks or list(NETWORKS), options.seconds))


if __name__ == "__main__":
    raise SystemExit(main())
