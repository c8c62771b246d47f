"""A picture posted to a real daemon, which is killed while its model answers."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from tests.fakes.files import png
from tests.fakes.openai_server import OpenAIServer
from tests.harness.real_daemon import PATIENCE_SECONDS, a_real_daemon

COMPLETION = {
    "body": {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A dot."}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
}


async def test_a_picture_is_sent_again_after_the_process_was_killed(tmp_path: Path) -> None:
    data = base64.b64encode(png(8, 8)).decode()
    file = {"name": "dot.png", "type": "image/png", "data": data}
    body = {"id": "m1", "sender": {"id": "ann"}, "text": "what is this?", "mentions_bot": True, "attachments": [file]}
    async with OpenAIServer([{**COMPLETION, "delay_seconds": 3600}, COMPLETION, COMPLETION]) as server:
        async with a_real_daemon(tmp_path, server.base_url, sees=True) as daemon:
            await daemon.posts("family", body)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not server.requests:  # noqa: ASYNC110 - the daemon has its own time
                    await asyncio.sleep(0.02)
            daemon.process.kill()
            await daemon.ended()
        async with a_real_daemon(tmp_path, server.base_url, sees=True) as daemon:
            assert await daemon.said("family", 1) == ["A dot."]
            await daemon.posts("work", {**body, "id": "m2", "attachments": [], "reply_to": "m1"})
            assert await daemon.said("work", 1) == ["A dot."]
    url = f"data:image/png;base64,{data}"
    shown = [url in request.body.decode() for request in server.requests]
    assert shown == [True, True, False]
