"""The plugin `tests.no_skips`: skipped tests fail if ROLLCALL_NO_SKIPS is set."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PLUGINS = [
    f"-p{name}" for name in ("tests.no_skips", "no:cacheprovider", "no:asyncio", "no:hypothesispytest", "no:simcord")
]
SKIPS_IN_THE_TEST = "import pytest\ndef test_page():\n    pytest.skip('no browser')\n"
SKIPS_BY_MARK = "import pytest\n@pytest.mark.skip(reason='no browser')\ndef test_page(): pass\n"
SKIPS_THE_MODULE = "import pytest\npytest.skip('no browser', allow_module_level=True)\n"
each_way = pytest.mark.parametrize(
    "source", [SKIPS_IN_THE_TEST, SKIPS_BY_MARK, SKIPS_THE_MODULE], ids=["in the test", "by mark", "the module"]
)


class Session:
    """Separate pytest sessions, with or without ROLLCALL_NO_SKIPS."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pytester = pytester
        self._monkeypatch = monkeypatch

    def run(self, source: str, *, no_skips: bool) -> tuple[int, str]:
        """Exit code and output of a session for one file with the content `source`."""
        self._monkeypatch.setenv("ROLLCALL_NO_SKIPS", "1" if no_skips else "")
        self._pytester.makepyfile(test_sample=source)
        finished = self._pytester.runpytest_inprocess("-rs", *PLUGINS)
        return int(finished.ret), finished.stdout.str()


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Session:
    return Session(pytester, monkeypatch)


@each_way
def test_where_nothing_may_be_skipped_a_skip_fails_and_gives_its_reason(session: Session, source: str) -> None:
    code, output = session.run(source, no_skips=True)
    assert code != 0
    assert "skipped, though ROLLCALL_NO_SKIPS is set: no browser" in output


@each_way
def test_elsewhere_a_skip_is_named_and_fails_nothing(session: Session, source: str) -> None:
    _, output = session.run(source, no_skips=False)
    assert "SKIPPED [1]" in output
    assert "no browser" in output
    assert "1 skipped in" in output


def test_absent_data_may_be_skipped_everywhere(session: Session) -> None:
    source = "import pytest\ndef test_corpus():\n    pytest.skip('no corpus in $ROLLCALL_DATA')\n"
    code, output = session.run(source, no_skips=True)
    assert (code, "1 skipped" in output) == (0, True)


def test_a_test_that_is_expected_to_fail_is_no_skip(session: Session) -> None:
    source = "import pytest\n@pytest.mark.xfail\ndef test_bug():\n    assert False\n"
    code, output = session.run(source, no_skips=True)
    assert (code, "1 xfailed" in output) == (0, True)
