"""One account on a Matrix server: login, requests, and encryption."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import aiohttp
import orjson
from nio import AsyncClient, AsyncClientConfig, ErrorResponse, Event, MegolmEvent, SyncResponse
from nio.crypto import ENCRYPTION_ENABLED
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment
from nio.exceptions import EncryptionError, GroupEncryptionError, LocalProtocolError

from bot.platforms.adapter import needs_extra
from bot.platforms.base import FileUnavailable, SendFailed
from bot.platforms.connection import CannotConnect
from bot.platforms.matrix.adapter import MatrixSettings
from bot.platforms.web_api import FILE_SECONDS, Refused, WebApi, bearer
from services.refs import JsonObject

_REQUEST_SECONDS = 60.0
_MXC = re.compile(r"mxc://([\w.:\[\]-]+)/([\w-]+)", re.ASCII)


class MatrixClient:
    """The account. Requests raise SendFailed; without an answer the outcome is unknown."""

    def __init__(self, settings: MatrixSettings, folder: Path | None) -> None:
        """`folder`: for the device and its keys; None if nothing is to be stored, which excludes encryption. Raises
        CannotOpen if the packages for encryption are missing."""
        if settings.encryption and not ENCRYPTION_ENABLED:
            with needs_extra("matrix-e2ee"):
                raise ModuleNotFoundError(name="vodozemac")
        # It logs the content of events.
        logging.getLogger("nio").setLevel(logging.CRITICAL)
        self._settings = settings
        self._device_file = folder / "device.json" if folder is not None else None
        self._keys = folder / "keys" if folder is not None else None
        self._has_keys = settings.encryption and folder is not None
        # Failures are handled by the delivery and by the connection, not by repeating requests here.
        config = AsyncClientConfig(encryption_enabled=self._has_keys, max_limit_exceeded=0, max_timeouts=0)
        self.nio = AsyncClient(settings.homeserver, settings.user, store_path=str(self._keys or ""), config=config)
        self._web = WebApi("the home server", settings.homeserver)
        self._sharing = asyncio.Lock()

    async def log_in(self) -> None:
        """Use the access token or the stored device, else create a device with the password. Raises CannotConnect if
        the server rejects them, and SendFailed."""
        if self.nio.user_id and self.nio.access_token:
            return
        device = self._stored_device()
        token = self._settings.access_token.get_secret_value() or device.get("access_token", "")
        try:
            if token:
                self.nio.access_token = token
                device = await self.call("GET", "v3/account/whoami") | {"access_token": token}
            else:
                device = await self._new_login(device.get("device_id"))
        except Refused as problem:
            if problem.retryable and problem.code != "M_UNKNOWN_TOKEN":
                raise
            self.log_in_again()
            what = "access_token" if self._settings.access_token.get_secret_value() else "password"
            raise CannotConnect(f"{problem} to the login: check homeserver, user and {what}") from problem
        if device["user_id"] != self._settings.user:
            raise CannotConnect(f"the login belongs to {device['user_id']}, not to {self._settings.user}")
        if self._has_keys and self._keys is not None:
            self._keys.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.nio.restore_login(device["user_id"], device.get("device_id") or "", device["access_token"])

    async def _new_login(self, device_id: str | None) -> JsonObject:
        self.nio.access_token = ""
        body = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": self._settings.user},
            "password": self._settings.password.get_secret_value(),
            "initial_device_display_name": "Rollcall",
        }
        device = await self.call("POST", "v3/login", body | ({"device_id": device_id} if device_id else {}))
        self._store_device(device)
        return device

    def log_in_again(self) -> None:
        """Forget the access token after the server has rejected it; the device and its keys are retained."""
        self.nio.access_token = ""
        device = self._stored_device()
        if device.pop("access_token", None):
            self._store_device(device)

    def _stored_device(self) -> JsonObject:
        if self._device_file is None or not self._device_file.exists():
            return {}
        device: JsonObject = orjson.loads(self._device_file.read_bytes())
        return device if device.get("user_id") == self._settings.user else {}

    def _store_device(self, device: JsonObject) -> None:
        if self._device_file is None:
            return
        self._device_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = {key: device[key] for key in ("user_id", "device_id", "access_token") if key in device}
        new = self._device_file.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(orjson.dumps(kept))
        new.replace(self._device_file)

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, object] | None = None,
        *,
        media_type: str = "application/json",
        seconds: float = _REQUEST_SECONDS,
    ) -> JsonObject:
        """The answer to a request to the API; `path` is below `/_matrix/client/` or `/_matrix/`, with escaped parts."""
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        url = f"/_matrix/{'' if path.startswith('media/') else 'client/'}{path}"
        headers = bearer(self.nio.access_token) | {"Content-Type": media_type}
        options: Any = {"data": data, "params": query, "headers": headers}
        status, answered, content = await self._web.call(method, url, seconds=seconds, **options)
        if status < 300 and isinstance(content, dict):
            return content
        error = content if isinstance(content, dict) else {}
        wait_ms, code = error.get("retry_after_ms"), str(error.get("errcode"))
        code = code if re.fullmatch(r"[A-Z_]{1,60}", code) else ""
        seconds_left = -(-wait_ms // 1000) if isinstance(wait_ms, int) else answered.get("Retry-After", "5")
        status = 429 if code == "M_LIMIT_EXCEEDED" else status
        words = f"the home server answers {status} {code}".rstrip()
        raise Refused(words, status, code=code, retry_after=seconds_left, for_account=status == 429)

    # Files

    async def upload(self, content: bytes, media_type: str, encrypted: bool) -> JsonObject:
        """Upload a file; returns the part of a message's content that refers to it."""
        info = {"mimetype": media_type, "size": len(content)}
        keys: JsonObject = {}
        if encrypted:
            content, keys = await asyncio.to_thread(encrypt_attachment, content)
            media_type = "application/octet-stream"
        upload = self.call("POST", "media/v3/upload", content, media_type=media_type, seconds=FILE_SECONDS)
        url = {"url": (await upload)["content_uri"]}
        return {"info": info} | ({"file": keys | url} if encrypted else url)

    async def download(self, file: JsonObject, max_bytes: int) -> bytes:
        """The content of a file of at most `max_bytes`, decrypted if `file` has keys. Raises FileUnavailable."""
        place = _MXC.fullmatch(str(file.get("url")))
        if place is None:
            raise FileUnavailable("the file is not on a Matrix server")
        url = f"{self._web.url}/_matrix/client/v1/media/download/{quote(place[1])}/{place[2]}"
        content = await self._web.download(url, max_bytes, headers=bearer(self.nio.access_token))
        if "key" not in file:
            return content
        try:
            clear: bytes = await asyncio.to_thread(
                decrypt_attachment, content, file["key"]["k"], file["hashes"]["sha256"], file["iv"]
            )
        except (EncryptionError, LookupError, TypeError):
            raise FileUnavailable("the file cannot be decrypted") from None
        return clear

    # Encryption and rooms

    async def follow(self, sync: JsonObject) -> None:
        """Update rooms, members and keys from the answer of a sync. Raises any exception if it cannot be read."""
        self.nio.next_batch = ""  # otherwise a repeated answer is ignored
        answer = SyncResponse.from_dict(sync)
        if isinstance(answer, ErrorResponse):
            raise TypeError("the answer has an unknown form")
        await self.nio.receive_response(answer)

    async def exchange_keys(self) -> None:
        """Upload keys, and query those of changed devices. Raises SendFailed."""
        nio = self.nio
        if nio.olm is None:
            return
        if nio.should_upload_keys:
            await _checked(nio.keys_upload())
        if nio.should_query_keys:
            await _checked(nio.keys_query())
        if nio.should_claim_keys:
            await _checked(nio.keys_claim(nio.get_users_for_key_claiming()))
        await _checked(nio.send_to_device_messages())

    def decrypted(self, room: str, event: JsonObject) -> JsonObject | None:
        """`event` with its clear type and content; None if there is no key for it."""
        if event.get("type") != "m.room.encrypted":
            return event
        secret = Event.parse_event(event)
        if not isinstance(secret, MegolmEvent) or self.nio.olm is None:
            return None
        secret.room_id = room
        try:
            clear: JsonObject = self.nio.decrypt_event(secret).source
        except EncryptionError:
            return None
        # Others are not encrypted: an encrypted one, such as a redaction, was not checked by the servers.
        is_message = clear.get("type") in ("m.room.message", "m.sticker", "m.reaction")
        return event | {"type": clear["type"], "content": clear.get("content")} if is_message else event

    async def encrypted(self, room: str, kind: str, content: JsonObject) -> tuple[str, JsonObject]:
        """Type and content of an event for an encrypted room; the devices of its members get the key. Raises
        SendFailed."""
        known = self.nio.rooms.get(room)
        if self.nio.olm is None or known is None or not known.encrypted:
            is_new = self.nio.olm is not None
            words = "the state of the room is not known yet" if is_new else "the room is encrypted; enable encryption"
            raise SendFailed(words, retryable=is_new)
        async with self._sharing:
            if not known.members_synced:
                await _checked(self.nio.joined_members(room))
            if self.nio.should_query_keys:
                await _checked(self.nio.keys_query())
            try:
                if self.nio.olm.should_share_group_session(room):
                    await self._share_key(room, list(known.users))
                secret: tuple[str, JsonObject] = self.nio.encrypt(room, kind, content)
            except (LocalProtocolError, EncryptionError, GroupEncryptionError):
                raise SendFailed("the members of the room have just changed", retryable=True) from None
            return secret

    async def _share_key(self, room: str, members: list[str]) -> None:
        """Send the room's key to all devices. nio's own method ignores failures, and its members could not read."""
        olm = self.nio.olm
        missing = self.nio.get_missing_sessions(room)
        if missing:
            await _checked(self.nio.keys_claim(missing))
        shares = olm.share_group_session_parallel(room, members, ignore_unverified_devices=True)
        for devices, messages in shares:
            await self.call("PUT", f"v3/sendToDevice/m.room.encrypted/{uuid4()}", messages)
            olm.outbound_group_sessions[room].users_shared_with.update(devices)
        olm.outbound_group_sessions[room].shared = True

    def add_member(self, room: str, user: str, state: JsonObject) -> None:
        """Note the display name of a member, from the content of their member event."""
        name = state.get("displayname")
        if room in self.nio.rooms:
            self.nio.rooms[room].add_member(user, name if isinstance(name, str) else None, None)

    def members_changed(self, room: str) -> None:
        """Fetch the members again before the next encryption, and use a new key."""
        if room in self.nio.rooms and self.nio.olm is not None:
            self.nio.rooms[room].members_synced = False
            self.nio.invalidate_outbound_session(room)

    async def close(self) -> None:
        """Close connections and files."""
        await self._web.close()
        await self.nio.close()
        if self.nio.store is not None:
            self.nio.store.database.close()


async def _checked(request: Awaitable[Any]) -> None:
    """Raise SendFailed if nio's request fails."""
    try:
        answer = await request
    except (aiohttp.ClientError, TimeoutError, LocalProtocolError):
        raise SendFailed("the home server did not answer a request for keys", retryable=True) from None
    if isinstance(answer, ErrorResponse):
        raise SendFailed("the home server rejects a request for keys", retryable=True)
