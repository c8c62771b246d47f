"""Storage of definition files in a bucket of Amazon S3 or a compatible server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from config.sections.basic import S3Settings
from services.extras import missing_extra
from services.storage import StorageError

if TYPE_CHECKING:
    from obstore.store import S3Store

_MOST_FILES = 10_000
_MOST_BYTES = 1024 * 1024
_RETRY: Any = {"max_retries": 1, "retry_timeout": timedelta(seconds=4)}
_STATUS = re.compile(r"status code: (\d{3})")


class S3Storage:
    """Files of a bucket below a prefix. Etags are those of the server. Blocks; each request takes at most some seconds.
    Errors contain nothing that the server says."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        self._bucket, _, prefix = settings.url.removeprefix("s3://").partition("/")
        self._prefix = prefix.strip("/")

    def list(self) -> Mapping[str, str]:
        files: dict[str, str] = {}
        with self._errors(self._settings.url):
            for page in self._store.list():
                for file in page:
                    etag = file["e_tag"] or f"{file['last_modified'].timestamp()}-{file['size']}"
                    files[file["path"]] = etag
                if len(files) > _MOST_FILES:
                    raise StorageError(f"{self._settings.url}: there are more than {_MOST_FILES} files")
        return dict(sorted(files.items()))

    def read(self, path: str) -> bytes:
        with self._errors(self.place(path)):
            found = self._store.get(path)
            if found.meta["size"] > _MOST_BYTES:
                raise StorageError(f"{self.place(path)}: larger than {_MOST_BYTES // 1024} kB")
            return bytes(found.bytes())

    def place(self, path: str) -> str:
        return "/".join(filter(None, (f"s3://{self._bucket}", self._prefix, path)))

    @cached_property
    def _store(self) -> S3Store:
        from obstore.store import S3Store  # optional, and only loaded for a bucket

        settings = self._settings
        is_signed = bool(settings.access_key.get_secret_value())
        more: Any = {"endpoint": settings.endpoint} if settings.endpoint else {}
        if is_signed:
            more["access_key_id"] = settings.access_key.get_secret_value()
            more["secret_access_key"] = settings.secret_key.get_secret_value()
        return S3Store(
            self._bucket,
            prefix=self._prefix or None,
            region=settings.region,
            skip_signature=not is_signed,
            client_options={
                "timeout": "4s",
                "connect_timeout": "2s",
                "allow_http": settings.endpoint.startswith("http:"),
            },
            retry_config=_RETRY,
            **more,
        )

    @contextmanager
    def _errors(self, place: str) -> Iterator[None]:
        """Convert every error of the library to a StorageError about `place`."""
        try:
            yield
        except StorageError:
            raise
        except ImportError:
            raise StorageError(f"{place}: {missing_extra('s3', 'obstore')}") from None
        except Exception as error:  # noqa: BLE001 - errors of the library quote the server's answer
            raise StorageError(f"{place}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    found = _STATUS.search(str(error))
    status = int(found[1]) if found else 0
    if isinstance(error, FileNotFoundError) or status == 404:
        return "there is no such bucket or file"
    if status in (401, 403) or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        return "the server refuses access; check access_key, secret_key and region"
    return "the server cannot be reached or does not answer as S3 does; check endpoint"
