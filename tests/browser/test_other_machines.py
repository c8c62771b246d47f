"""The chat page with a public URL: behind nginx with TLS, and over plain HTTP in a local network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.conftest import CHROMIUM, PATIENCE_SECONDS, SERVED_NAME, a_running_daemon
from tests.docs.documents import Page as Document
from tests.harness.irc_servers import a_certificate, free_ports
from tests.harness.nginx import NGINX, nginx

[DOCUMENTED] = [block.text for block in Document("docs/operators.md").of("nginx")]
REWRITTEN_HOST = "proxy_pass http://127.0.0.1:8080;"
HOST_PASSED_ON = f"{REWRITTEN_HOST} proxy_set_header Host $http_host;"
HOST_WITHOUT_PORT = f"{REWRITTEN_HOST} proxy_set_header Host $host;"
ADDRESS_IN_THE_DOCUMENTATION = "https://bot.example.org"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
    pytest.mark.asyncio(loop_scope="package"),
]


def a_settings_file(folder: Path, port: int, public_url: str) -> Path:
    file = folder / "bot.yaml"
    file.write_text(
        "logging: {console: 'off'}\n"
        "chats: {allow: ['web:*']}\n"
        "platforms:\n"
        f"  web: {{port: {port}, public_url: '{public_url}', rooms: [{{id: family, title: Family}}]}}\n",
        encoding="utf-8",
    )
    return file


async def joins_sends_votes_and_reloads(browser: Browser, address: str, shots: str = "") -> bool:
    """Whether the page was a secure context, and whether its cookie is only for HTTPS."""
    context = await browser.new_context(ignore_https_errors=True)
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    await page.goto(address)
    await page.fill("#name", "Ann")
    await page.press("#name", "Enter")
    await expect(page.locator("#hello")).to_be_hidden()
    for text in ("Good morning", '/poll question="Where do we eat?" options=pizza,sushi'):
        await page.fill("#text", text)
        await page.click("#send")
    vote = page.get_by_role("button", name="sushi", exact=True)
    await vote.click()
    await expect(page.locator(".row:not(.mine) .bubble").last).to_contain_text("1")
    await page.reload()
    await expect(page.locator("#my-name")).to_have_text("Ann")
    await expect(page.locator(".row.mine .bubble", has_text="Good morning")).to_have_count(1)
    await expect(page.locator(".waiting")).to_have_count(0)
    [cookie] = await context.cookies()
    is_secure: bool = await page.evaluate("isSecureContext")
    assert cookie.get("secure") is is_secure
    return is_secure


async def test_over_plain_http_in_a_local_network_people_join_send_vote_and_come_back(
    browser: Browser, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    address = f"http://{SERVED_NAME}:{port}"
    settings = a_settings_file(tmp_path, port, address)
    async with a_running_daemon(tmp_path, "--config", str(settings)) as printed:
        assert printed["Chat page"] == address
        assert printed["Owner link"].startswith(f"{address}/?owner=")
        assert not await joins_sends_votes_and_reloads(browser, address)


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
@pytest.mark.parametrize("forwarding", [REWRITTEN_HOST, HOST_PASSED_ON, HOST_WITHOUT_PORT])
async def test_behind_the_documented_tls_proxy_people_join_send_vote_and_come_back(
    browser: Browser, tmp_path: Path, forwarding: str
) -> None:
    port, daemon_port = free_ports(2)
    address = f"{ADDRESS_IN_THE_DOCUMENTATION}:{port}"
    certificate = a_certificate(tmp_path, "proxy")
    server = DOCUMENTED.replace(REWRITTEN_HOST, forwarding).replace("127.0.0.1:8080", f"127.0.0.1:{daemon_port}")
    server = server.replace("listen 443", f"listen 127.0.0.1:{port}")
    server = server.replace("/etc/ssl/certs/bot.example.org.pem", str(certificate))
    server = server.replace("/etc/ssl/private/bot.example.org.key", str(certificate.with_suffix(".key")))
    settings = a_settings_file(tmp_path, daemon_port, address)
    async with a_running_daemon(tmp_path, "--config", str(settings)) as printed, nginx(tmp_path, server):
        assert printed["Chat page"] == address
        assert await joins_sends_votes_and_reloads(browser, address)
