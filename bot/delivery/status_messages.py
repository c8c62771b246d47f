"""Status messages of long turns: posted through the outbox, edited while the turn runs, and at its end replaced by the
answer or deleted. They are no history."""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson
import structlog

from bot.delivery.outgoing import OutboundMessage, StatusPart, outbox_row, outgoing_from_json
from bot.platforms.base import ChatPlatform, Editing, Outgoing, Receipt, SendFailed
from services.clock import Clock
from services.fault_points import FaultPoints
from services.store.ids import Ids
from services.store.port import Row, Store, StoreFull
from services.store.turns import outbox

_log = structlog.get_logger("delivery")


@dataclass(slots=True)
class _Status:
    """Status message of a running turn."""

    native_id: str | None = None
    """Set when the network has accepted it."""
    posted_ms: int = 0
    is_final: bool = False
    """It is not posted or changed any more: the turn ends, or a request has failed."""


class StatusMessages:
    """The status messages of all turns. The delivery calls `show` and `end_with` in the order of the chat."""

    def __init__(self, store: Store, ids: Ids, clock: Clock, epoch: int, faults: FaultPoints) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._epoch = epoch
        self._reach = faults.reach
        self._statuses: dict[int, _Status] = {}
        """By turn id, from the first call of `may_show` to `forget`."""

    def may_show(self, turn_id: int) -> bool:
        """Whether the status of the turn may be posted or changed. True obliges the end of the turn to call `end`."""
        return not self._statuses.setdefault(turn_id, _Status()).is_final

    async def end(self, turn_id: int, *, is_recovered: bool) -> bool:
        """Stop changes of the turn's status. Returns whether there may be a status message, which a message with
        `StatusPart.END` has to replace or delete. `is_recovered`: an earlier process may have posted it. Raises
        StoreError."""
        status = self._statuses.get(turn_id)
        if status is not None:
            status.is_final = True
            return True
        return is_recovered and await self._row(turn_id) is not None

    def forget(self, turn_id: int) -> None:
        """Forget the status of a turn whose end is stored."""
        self._statuses.pop(turn_id, None)

    async def show(self, platform: ChatPlatform, turn_id: int, outgoing: Outgoing) -> SendFailed | None:
        """Post or change the status of a running turn; does nothing if the turn has ended meanwhile. Returns the
        failure, after which the status is not changed any more, or None. Raises StoreError, except StoreFull."""
        status = self._statuses.get(turn_id)
        if status is None or status.is_final or not isinstance(platform, Editing):
            return None
        try:
            if status.native_id is None:
                row = await self._row(turn_id)
                if row is None:
                    await self._post(platform, status, turn_id, outgoing)
                    return None
                # An earlier process has posted it.
                status.native_id, status.posted_ms = await self._native_id(platform, row), row["at_ms"]
            if status.native_id is None or not self._is_editable(status.posted_ms, platform):
                status.is_final = True
            elif not status.is_final:
                await platform.edit(status.native_id, outgoing)
        except SendFailed as failure:
            status.is_final = True
            _log.info("status_not_shown", chat=outgoing.chat.key, problem=str(failure))
            return failure
        except StoreFull:
            status.is_final = True
        except Exception:
            status.is_final = True
            raise
        return None

    async def _post(self, platform: ChatPlatform, status: _Status, turn_id: int, outgoing: Outgoing) -> None:
        """Post the status and store its native id. Raises SendFailed and StoreError."""
        status.posted_ms, outgoing = self._clock.now_ms(), replace(outgoing, key=outbox.status_key(turn_id))
        message = OutboundMessage(
            self._ids.next(),
            outgoing,
            None,
            claimed=True,
            created_ms=status.posted_ms,
            turn_id=turn_id,
            status=StatusPart.SHOW,
        )
        await self._store.commit([outbox_row(message, self._epoch)])
        if status.is_final:
            # The turn ended during the commit.
            self._store.post([outbox.end_status(turn_id)])
            return
        try:
            receipt = await platform.send(outgoing)
        except SendFailed as failure:
            if not failure.unknown_outcome:
                self._store.post([outbox.end_status(turn_id)])
            raise
        self._reach("status.after_send_before_mark")
        await self._store.commit([outbox.sent(message.row_id, receipt.native_id)])
        status.native_id = receipt.native_id
        self._reach("status.after_mark")

    async def end_with(self, platform: ChatPlatform, turn_id: int, outgoing: Outgoing) -> Receipt | None:
        """Replace the status of the turn by `outgoing`, or delete it if it cannot be edited or `outgoing` has no text.
        Returns None unless it was replaced. Raises SendFailed, and StoreError."""
        row = await self._row(turn_id)
        native_id = None if row is None else await self._native_id(platform, row)
        if row is None or native_id is None or not isinstance(platform, Editing):
            return None
        if outgoing.text and self._is_editable(row["at_ms"], platform):
            try:
                await platform.edit(native_id, outgoing)
            except SendFailed as failure:
                if failure.retryable:
                    raise
            else:
                return Receipt(native_id)
        try:
            await platform.delete(outgoing.chat, native_id)
        except SendFailed as failure:
            # An answer is not lost because its status cannot be deleted.
            if failure.retryable and not outgoing.text:
                raise
            _log.warning("status_not_deleted", chat=outgoing.chat.key, problem=str(failure))
        return None

    async def _row(self, turn_id: int) -> Row | None:
        rows = await self._store.read(outbox.status_of(turn_id))
        return rows[0] if rows else None

    async def _native_id(self, platform: ChatPlatform, row: Row) -> str | None:
        """Native id of the stored status `row`; None if it has none. If it is unknown whether the network has accepted
        the status, a repeated send with its key returns the id, where sends are idempotent. Raises SendFailed, and
        StoreError."""
        if row["state"] == "sending" and platform.limits.sends_are_idempotent:
            receipt = await platform.send(outgoing_from_json(row["key"], orjson.loads(row["body"])))
            await self._store.commit([outbox.sent(row["id"], receipt.native_id)])
            return receipt.native_id
        native_id: str | None = row["native_id"]
        return native_id

    def _is_editable(self, posted_ms: int, platform: ChatPlatform) -> bool:
        """Whether the network lets the bot edit a message of that time."""
        seconds = platform.limits.edit_seconds
        return seconds is None or self._clock.now_ms() - posted_ms < seconds * 1000
