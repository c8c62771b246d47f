"""Workers of a cluster that differ from each other."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from bot.testing import ACCOUNT, PLATFORM
from config.sections.models import FailoverSettings
from services.clock import Deadlines, SystemClock
from services.llm.failover import Failover
from services.llm.model import ModelError, ModelMessage, ModelRequest
from services.refs import ChatRef, ErrorCode
from tests.contracts.engines import a_conversation, until
from tests.fakes.model import ScriptedModel

_CHATS = 12


async def test_a_worker_that_reaches_no_model_leaves_turns_to_others(
    new_postgres_database: str, tmp_path: Path
) -> None:
    clock, down = SystemClock(), ModelError(ErrorCode.TIMEOUT, "unreachable from here")
    unreachable = ScriptedModel(*[down] * 2 * _CHATS)
    model = Failover([unreachable], FailoverSettings(failures=1, cooldown_seconds=600), clock, Deadlines(clock))
    async with a_conversation("cluster", tmp_path, new_postgres_database, of_first_worker=model) as conversation:
        conversation.model.says(*["Hello."] * _CHATS)
        with suppress(ModelError):
            await model.complete(ModelRequest([ModelMessage("user", "hello")]))
        first = conversation.daemons[1].overrides.cluster
        assert first is not None
        await until(first.leaves_jobs)
        chats = [ChatRef(PLATFORM, ACCOUNT, f"chat{number}") for number in range(_CHATS)]
        await asyncio.gather(*(conversation.hear("Ann", "@Rollcall hello", chat=chat) for chat in chats))
        await conversation.sends(_CHATS)
    assert conversation.texts == ["Hello."] * _CHATS
