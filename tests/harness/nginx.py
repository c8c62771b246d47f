"""A real nginx."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_SECONDS = 60


@asynccontextmanager
async def nginx(folder: Path, server: str) -> AsyncIterator[None]:
    """nginx with the blocks `server`, after it listens."""
    assert NGINX is not None
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n{server}\n}}\n",
        encoding="utf-8",
    )
    process = await asyncio.create_subprocess_exec(
        *(NGINX, "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(configuration)),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            while not (folder / "nginx.pid").exists():
                assert process.returncode is None, (folder / "error.log").read_text()
                await asyncio.sleep(0.01)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
