"""Scripts in a bucket, with a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from bot.testing import Group, a_group
from config.sections.basic import S3Settings
from config.settings import Settings
from function_calls.spec import FunctionSpec
from services.s3_storage import S3Storage
from services.storage import StorageError
from tests.fakes.sources import ToldChanges
from tests.harness.irc_servers import free_ports
from tests.harness.mcp_servers import until_true
from tests.harness.s3_server import S3Server, s3_server

_POLL_SECONDS = 37  # no other task sleeps so long


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


def storage(server: S3Server, prefix: str, **more: Any) -> S3Storage:
    return S3Storage(S3Settings.model_validate(server.settings(prefix, **more)))


def says(text: str) -> str:
    return f'DESCRIPTION "Says {text}"\nTALK "{text}"\n'


@pytest.mark.requirement("A8")
def test_a_bucket_lists_the_files_below_its_prefix_and_reads_them(server: S3Server) -> None:
    server.put("one/b c#é.bas", "B")
    server.put("one/x.gbai/x.gbdialog/a.bas", "A")
    server.put("other/c.bas", "C")
    found = storage(server, "/one/")
    assert list(found.list()) == ["b c#é.bas", "x.gbai/x.gbdialog/a.bas"]
    assert found.read("b c#é.bas") == b"B"
    assert found.place("b c#é.bas") == "s3://scripts/one/b c#é.bas"


@pytest.mark.requirement("A8", "A30")
def test_the_etag_changes_with_the_content_alone(server: S3Server) -> None:
    server.put("etag/a.bas", "A")
    found = storage(server, "/etag")
    before = found.list()["a.bas"]
    server.put("etag/a.bas", "A")
    assert found.list()["a.bas"] == before
    server.put("etag/a.bas", "B")
    assert found.list()["a.bas"] != before


def test_what_is_missing_too_large_or_unreachable_is_told_without_words_of_the_server(server: S3Server) -> None:
    with pytest.raises(StorageError, match=r"^s3://scripts/no/gone\.bas: there is no such bucket or file$"):
        storage(server, "/no").read("gone.bas")
    server.put("large/a.bas", "x" * (1024 * 1024 + 1))
    with pytest.raises(StorageError, match=r"^s3://scripts/large/a\.bas: larger than 1024 kB$"):
        storage(server, "/large").read("a.bas")
    closed = f"http://127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(StorageError, match=r"^s3://scripts: the server cannot be reached [\w ,;]+ check endpoint$"):
        storage(server, "", endpoint=closed).list()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({}, "needs either path or s3"),
        ({"path": "a", "s3": {"url": "s3://scripts"}}, "needs either path or s3"),
        ({"s3": {"url": "https://scripts"}}, "has to be s3://bucket"),
        ({"s3": {"url": "s3://scripts", "access_key": "k"}}, "needs both access_key and secret_key"),
    ],
)
def test_a_source_has_one_place_and_complete_keys(source: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Settings.model_validate({"sources": {"basic": [source]}})


def settings(server: S3Server, prefix: str = "") -> dict[str, Any]:
    return {"sources": {"basic": [{"s3": server.settings(prefix, poll_seconds=_POLL_SECONDS)}]}}


async def poll(group: Group) -> None:
    """Let the poll interval pass; returns after the look."""
    await until_true(lambda: group.clock.is_slept(_POLL_SECONDS))
    await group.clock.advance(_POLL_SECONDS)
    await until_true(lambda: group.clock.is_slept(_POLL_SECONDS))


def active(group: Group, name: str) -> FunctionSpec | None:
    return group.daemon.registry.of("default").find(name)


@pytest.mark.requirement("A7", "A8", "A9", "A11")
async def test_scripts_of_a_bucket_are_compiled_changed_and_removed_within_a_poll(server: S3Server) -> None:
    server.put("live/hello.bas", says("hello"))
    async with a_group(settings=settings(server, "/live"), changes=ToldChanges()) as group:
        assert await group.say("Ann", "/hello") == ["hello"]
        first = active(group, "hello")
        await poll(group)
        server.put("live/hello.bas", says("good day"))
        server.put("live/bye.bas", says("bye"))
        await poll(group)
        assert active(group, "bye") is not None
        assert active(group, "hello") is not first
        assert await group.say("Ann", "/hello") == ["good day"]
        server.delete("live/bye.bas")
        await poll(group)
        assert active(group, "bye") is None


@pytest.mark.requirement("A8")
async def test_an_outage_keeps_the_scripts_is_said_once_and_ends_by_itself() -> None:
    with s3_server() as server:
        server.put("hello.bas", says("hello"))
        with capture_logs() as logs:
            async with a_group(settings=settings(server), changes=ToldChanges()) as group:
                server.stop()
                for _ in range(3):
                    await poll(group)
                    assert group.daemon.functions.faults
                assert await group.say("Ann", "/hello") == ["hello"]
                server.start()
                server.put("hello.bas", says("again"))
                await poll(group)
                assert not group.daemon.functions.faults
                assert await group.say("Ann", "/hello") == ["again"]
    said = [one["event"] for one in logs if "cannot be reached" in str(one)]
    assert said == ["function_unusable", "function_mended"]
    assert "secret-of-tests" not in str(logs)
