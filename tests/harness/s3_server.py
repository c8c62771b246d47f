"""moto's S3 server, in its own process and environment."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from bot.platforms.contract import WAIT_SECONDS
from tests.harness.foreign import python_of
from tests.harness.irc_servers import free_ports

_AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=s"


class S3Server:
    """A server with one bucket, `scripts`."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def settings(self, prefix: str = "", **more: Any) -> dict[str, Any]:
        """Settings of the bucket."""
        keys = {"access_key": "key-of-tests", "secret_key": "secret-of-tests"}
        return {"url": f"s3://scripts{prefix}", "endpoint": self.endpoint, **keys, **more}

    def start(self) -> None:
        """Start the server and create the bucket."""
        command = [str(python_of("moto")), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            with suppress(OSError):
                self._request("PUT", "")
                return
            time.sleep(0.05)
        raise TimeoutError("the server does not listen")

    def stop(self) -> None:
        """End the process; the bucket is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def put(self, path: str, content: str) -> None:
        """Add or replace an object."""
        self._request("PUT", path, content.encode())

    def delete(self, path: str) -> None:
        """Delete an object."""
        self._request("DELETE", path)

    def _request(self, method: str, path: str, body: bytes | None = None) -> None:
        headers = {"Authorization": _AUTHORIZATION, "Content-Type": "application/octet-stream"}
        url = f"{self.endpoint}/scripts/{quote(path)}"
        urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=5).close()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A running server. Skips the test if moto is not installed."""
    server = S3Server(free_ports(1)[0])
    server.start()
    try:
        yield server
    finally:
        server.stop()
