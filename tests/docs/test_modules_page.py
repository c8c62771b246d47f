"""docs/modules.md: its files work, and its statements about settings, order and changes are true."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.registration.function_sources import ConfiguredSource
from bot.registration.functions import sources_of
from bot.testing import a_group
from config.settings import Settings, SourcesSettings
from function_calls.loading.source import Unwatched
from function_calls.sources.python_modules import GROUP
from services.clock import Clock, VirtualClock
from services.sandbox.sandbox import Sandbox
from services.sandbox.workspace import Workspaces
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.config.files import settings_of
from tests.docs.documents import Page
from tests.docs.terminal import matches
from tests.fakes.sources import ToldChanges

PAGE = Page("docs/modules.md")
_FILE = re.compile(r"# ~/my-bot/functions/(\S+)\n")


def written(folder: Path) -> Path:
    """Write the files of the page into `folder`."""
    for block in PAGE.of("python"):
        named = _FILE.match(block.text)
        assert named is not None, block.where
        file = folder / named[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
    (folder / "shop" / "__init__.py").write_text("")
    return folder


async def answers(settings: dict[str, Any], *lines: str) -> list[str]:
    """The bot's answers to these commands, without any problems."""
    async with a_group(settings=settings) as group:
        assert group.daemon.functions.faults == ()
        return [text for line in lines for text in await group.say("Ann", line)]


@pytest.mark.requirement("E28")
async def test_the_files_of_the_page_serve(tmp_path: Path) -> None:
    settings = {"sources": {"python": [str(written(tmp_path))]}}
    assert await answers(settings, "/parcel X7", "/visit 7", "/visit 9", "/price tea") == [
        "Parcel X7 is on its way, Ann.",
        "The shop opens at 8.",
        "See you at 9. Thank you!",
        "3 euros",
    ]


async def test_the_definitions_of_the_page_have_what_tool_info_lends_them(tmp_path: Path) -> None:
    async with a_group(settings={"sources": {"python": [str(written(tmp_path) / "kitchen.py")]}}) as group:
        functions = group.daemon.registry.of("default")
        ounces, weigh = functions.find("to_ounces"), functions.find("weigh")
    assert ounces is not None
    assert weigh is not None
    assert (ounces.origin.tags, ounces.description) == ({"kitchen"}, "Turn grams into ounces")
    assert (weigh.origin.tags, weigh.description) == ({"scales"}, "Kitchen scales")
    async with a_group(settings={"sources": {"python": [str(tmp_path / "kitchen.py")]}}) as group:
        assert await group.say("Ann", "/ounces 100") == ["3.5 oz"]


def test_the_settings_of_the_page_are_good_and_name_all_there_are(tmp_path: Path) -> None:
    [block] = PAGE.of("yaml")
    settings_of(tmp_path, block.text)
    [table] = re.findall(r"^\| setting \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    rows = {name for row in table.splitlines()[2:] for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}
    assert rows == {*(f"sources.{key}" for key in SourcesSettings.model_fields if key in block.text), "plugins"}


def test_the_order_of_the_page_is_that_of_the_sources(tmp_path: Path) -> None:
    clock = VirtualClock()
    services = {Clock: clock, Sandbox: Sandbox(clock), Workspaces: Workspaces(tmp_path)}
    sources = [one.source for one in sources_of(Settings(), services, Unwatched()) if isinstance(one, ConfiguredSource)]
    [said] = re.findall(r"order: (.*?), entry points;", PAGE.text.replace("\n", " "))
    named = [name.strip("` ") for name in said.split(",")]
    ours = [one.name for one in sources if one.name in {"built in", "plugins", "sources.python", "sources.modules"}]
    assert [name.replace("built-in functions", "built in") for name in named] == ours


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[None]:
    """The package of the page, installed."""
    [block] = PAGE.of("text")
    project = tomllib.loads(block.text)["project"]
    entries = project["entry-points"][GROUP]
    folder = tmp_path / f"acme_tools-{project['version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        f"[{GROUP}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
    )
    written(tmp_path / "acme_tools")
    sys.path.insert(0, str(tmp_path))
    yield
    sys.path.remove(str(tmp_path))
    for name in [one for one in sys.modules if one.partition(".")[0] in ("acme_tools", "kitchen")]:
        del sys.modules[name]


@pytest.mark.usefixtures("acme")
async def test_the_package_of_the_page_announces_its_functions(tmp_path: Path) -> None:
    kitchen = tmp_path / "acme_tools" / "kitchen.py"
    # An installed module has its own name.
    kitchen.write_text(kitchen.read_text().replace('"kitchen:weigh"', '"acme_tools.kitchen:weigh"'))
    settings = {"sources": {"entry_points": True}}
    assert await answers(settings, "/parcel X7", "/ounces 100") == ["Parcel X7 is on its way, Ann.", "3.5 oz"]


async def test_a_change_counts_as_the_page_says(tmp_path: Path) -> None:
    file, changes = written(tmp_path) / "parcels.py", ToldChanges()
    good = file.read_text()
    async with a_group(changes=changes, settings={"sources": {"python": [str(tmp_path)]}}) as group:
        for text, said in (
            (good.replace("is on its way", "is here"), "Parcel X7 is here, Ann."),
            (good + "import sys\nsys.exit()\n", "Parcel X7 is here, Ann."),
            (good.replace("def parcel", "def (parcel"), "Parcel X7 is here, Ann."),
            (good, "Parcel X7 is on its way, Ann."),
        ):
            told = asyncio.Event()
            group.daemon.functions.on_change(told.set)
            file.write_text(text)
            changes.tell()
            async with asyncio.timeout(20):
                await told.wait()
            assert await group.say("Ann", "/parcel X7") == [said]


def test_check_says_what_the_page_shows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kitchen = written(tmp_path / "functions") / "kitchen.py"
    kitchen.write_text(kitchen.read_text().replace('"commands": ["ounces"]', '"timeout": "soon"'))
    printed = command(capsys, "check", a_settings_file(tmp_path, f"sources: {{python: [{kitchen}]}}\n"))
    [block] = PAGE.of("console")
    shown = block.text.splitlines()[1]
    assert printed.status == 1
    assert any(matches(shown, line) for line in printed.out.splitlines()), printed.out
