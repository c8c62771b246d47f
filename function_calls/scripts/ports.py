"""What keywords of scripts may ask of the daemon beside the services. Bound by type, as services are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from function_calls.basic.keywords import ScriptRun
from services.json_values import JsonObject


class ScriptFiles(Protocol):
    """The files that lie beside the scripts of a bot."""

    def read(self, bot: str, folder: str, name: str) -> bytes:
        """The content of the file `name` in the folder of a script of `bot`. May block: call it in a thread. Raises
        NoSuchScriptFile and ScriptFileTooLarge of services/script_files.py, and StorageError when it cannot be read."""

    def missed(self, bot: str, folder: str, name: str) -> None:
        """There is no such file, and a script that looked for its rows found none elsewhere."""


class ScriptWeb(Protocol):
    """The web, for keywords whose subject is another one."""

    async def delete(self, run: ScriptRun, url: str) -> JsonObject:
        """What the server at `url` answered to DELETE. Checks the address and the run's rights as GET does, sends the
        run's headers, and sets `run.outside`. Raises RunFault."""


class ScriptModel(Protocol):
    """The language model, for keywords whose subject is another one."""

    async def extract(self, run: ScriptRun, text: str, fields: Sequence[str]) -> JsonObject:
        """What `text` says, as a flat map: of these fields where some are given, else of those that fit the text. What
        the text does not say is not in it. The chat's share of the day pays, and `run.outside` is set. Raises
        RunFault (UNAVAILABLE) where there is no model or it gives nothing usable."""
