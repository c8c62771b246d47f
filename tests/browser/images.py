"""Pictures of the documentation, made by the browser tests.

python -m tests.browser.images    write docs/images again

Emoji and Chinese need fonts for them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
DESK: Mapping[str, str] = {
    "desk-owner-desktop-overview": "desk-overview",
    "desk-owner-desktop-turn": "desk-turn",
    "desk-settings-checked": "desk-settings",
}
"""Names in the documentation by the names of the tests' screenshots."""
COLOURS = 128
TESTS = (
    "tests/browser/test_recording.py",
    "tests/browser/test_desk.py::test_settings_are_checked_while_somebody_types",
    "tests/browser/test_desk.py::test_every_page_of_each_role_has_no_findings[owner-desktop]",
)


def main() -> int:
    """Exit status of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ROLLCALL_SCREENSHOTS": folder}
        done = subprocess.run([sys.executable, "-m", "pytest", *TESTS], cwd=ROOT, env=environment, check=False)
        if done.returncode == 0:
            shutil.copy(Path(folder) / "chat.gif", IMAGES)
            for taken, name in DESK.items():
                picture = Image.open(Path(folder) / f"{taken}.png").convert("RGB")
                picture.quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
