"""The section `schedules`: the forms of its entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import faults_of, settings_of

HEAD = 'schedules:\n  morning:\n    chat: "web:main:family"\n'


def entry(lines: str) -> str:
    """A file with one schedule with these lines in addition to its chat."""
    return HEAD + "".join(f"    {line}\n" for line in lines.splitlines())


@pytest.mark.parametrize(
    ("when", "words"), [("every day at 7", "every day at 7"), ('"0 7 * * *"', "0 7 * * *"), ("每天7点", "每天7点")]
)
def test_words_stand_for_themselves(tmp_path: Path, when: str, words: str) -> None:
    settings = settings_of(tmp_path, entry(f"when: {when}\nrun: weather Oslo"))
    morning = settings.schedules["morning"]
    assert (morning.when.words, morning.run, morning.as_role, morning.group) == (words, "weather Oslo", "admin", True)


def test_exact_forms_are_read_as_they_stand(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, entry("when: {at: 7:30, on: [mon, fri]}\nfunction: roll\narguments: {sides: 6}"))
    morning = settings.schedules["morning"]
    assert (morning.when.at, morning.when.on, morning.arguments) == ("7:30", ("mon", "fri"), {"sides": 6})


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("when: 7\nrun: x", 4, "schedules.morning.when has to be words such as"),
        ("when: {}\nrun: x", 4, "schedules.morning.when needs exactly one of words, cron, every_minutes, at, once"),
        ('when: {at: "7:30", cron: "0 7 * * *"}\nrun: x', 4, "needs exactly one of"),
        ("when: {cron: x, on: [mon]}\nrun: x", 4, "has `on` without `at`"),
        ('when: {at: "25:00"}\nrun: x', 4, "write it as 07:00"),
        ("when: {once: tomorrow}\nrun: x", 4, "write it as 2030-12-24 18:00"),
        ("when: {every_minutes: 0}\nrun: x", 4, "schedules.morning.when.every_minutes"),
        ("when: {on: [monday]}\nrun: x", 4, "schedules.morning.when.on[0]"),
        ("when: daily", 3, "schedules.morning needs either `run`"),
        ("when: daily\nrun: x\nfunction: y", 3, "schedules.morning needs either `run`"),
        ("when: daily\nrun: x\narguments: {a: 1}", 3, "has `arguments`, which belong to `function`"),
        ("run: x", 2, "schedules.morning.when is missing"),
        ("when: daily\nrun: x\ntimezone: Mars/Base", 6, "schedules.morning.timezone has to be an IANA time zone"),
        ("when: daily\nrun: x\nas_role: king", 6, "schedules.morning.as_role"),
        ("when: daily\nrun: x\nwhat: y", 6, "schedules.morning.what is not a setting"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, lines: str, line: int, words: str) -> None:
    [fault] = faults_of(tmp_path, entry(lines))
    assert words in fault.message
    assert fault.line == line


def test_a_chat_has_to_be_one_chat(tmp_path: Path) -> None:
    [fault] = faults_of(tmp_path, 'schedules: {morning: {chat: "web:*", when: daily, run: x}}')
    assert "schedules.morning.chat has to be platform:account:chat" in fault.message


def test_names_are_plain(tmp_path: Path) -> None:
    [fault] = faults_of(tmp_path, 'schedules: {"In the morning": {chat: "web:main:x", when: daily, run: x}}')
    assert "has to begin with a small letter" in fault.message


NETWORKS = "platforms: {http: {enabled: true, token: a-token-of-programs}, irc: [{account: libera, host: irc.test}]}\n"


@pytest.mark.parametrize(
    ("chat", "hint"),
    [
        ("telegram:bot:family", ""),
        ("irc:libra:#family", "; did you mean 'irc:libera'?"),
        ("irc:libera:#family", None),
        ("http:main:family", None),
        ("web:main:a:b", None),
        ("console:main:terminal", None),
    ],
)
def test_a_chat_of_a_network_that_the_bot_is_not_on_is_warned_of(tmp_path: Path, chat: str, hint: str | None) -> None:
    text = f'{NETWORKS}schedules: {{a: {{chat: "{chat}", when: daily, run: x}}}}'
    said = [(one.severity, one.message, one.line) for one in faults_of(tmp_path, text)]
    network = chat.rpartition(":")[0]
    message = f"schedules.a.chat is on {network}, which is not configured under platforms, so it never runs{hint}"
    assert said == ([] if hint is None else [("warning", message, 2)])
    assert list(faults_of(tmp_path, text.replace("run: x", "run: x, enabled: false"))) == []
