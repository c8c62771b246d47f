"""What scripts FIND in files that do not lie beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from config.diagnostics import Diagnostic
from function_calls.basic.codes import Code, Fault
from function_calls.basic.nodes import At
from function_calls.script_library.places import ScriptPlace
from services.script_files import LocalScriptFiles

_FINDS = re.compile(r'(?<![\w"])FIND\s{1,9}(?:ALL\s{1,9})?"([^"/\\:${}]{1,100}\.(?:csv|tsv))"', re.IGNORECASE)
_COMMENT = re.compile(r"\s*(?:'|#(?!\{)|//|REM(?!\w))", re.IGNORECASE)


def missing_files(content: bytes, file: str, place: ScriptPlace, files: LocalScriptFiles) -> Iterator[Diagnostic]:
    """A warning for each CSV file that a script without errors names literally, that is not there, and under whose name
    no script beside it keeps rows."""
    there = files.tables(place.bot, place.folder)
    known = {name.casefold() for name in there}
    shown = f"there are: {', '.join(there)}" if there else "there is no CSV file there"
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        for found in () if _COMMENT.match(line) else _FINDS.finditer(line):
            name = found[1]
            if name.casefold() in known or files.is_written(place.bot, place.folder, name):
                continue
            said = f"there is no file {name!r} beside the script, and no script keeps rows under that name; {shown}"
            yield Fault(At(number, found.start() + 1), Code.MISSING_FILE, said, "warning").diagnostic(file)
