"""`rollcall check` and `rollcall schema`."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from bot.registration.functions import at_their_places
from config.loader import load_settings
from config.yaml_document import read_yaml
from function_calls.schema.definition import problem_at
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.conftest import REPOSITORY

DIAGNOSTIC = re.compile(r"^(?P<file>\S+):(?P<line>\d+):(?P<column>\d+) (?P<code>[a-z]+\.[a-z_]+) (?P<message>.+)$")


def test_the_shipped_settings_and_functions_are_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys, "check") == (0, "config/bot.yaml: no problems found\n", "")


def test_every_finding_is_a_line_with_its_place_and_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("config_version: 1\ntimezone: Mars/Base\nrouter: {max_round: 3}\n")
    function = tmp_path / "greet.py"
    function.write_text(
        "from function_calls.declaration import tool_function\n"
        "from function_calls.context import MessageContext\n"
        "@tool_function()\n"
        "async def greet(context: MessageContext) -> str:\n"
        "    return context.text\n"
    )
    doubtful = a_settings_file(tmp_path, f"functions: {{gret: {{}}}}\nsources: {{python: [{function}]}}\n")
    printed = command(capsys, "check", bad, doubtful)
    found = [DIAGNOSTIC.match(line) for line in printed.out.splitlines()]
    assert [(one["file"], one["line"], one["code"]) for one in found if one] == [
        (str(bad), "2", "settings.bad_value"),
        (str(bad), "3", "settings.unknown_key"),
        (str(doubtful), "4", "functions.unknown"),
        (str(function), "3", "functions.no_description"),
        (str(function), "5", "functions.reads_text"),
    ]
    assert (len(found), printed.status, printed.err) == (5, 1, "")


def test_a_text_with_a_colon_is_explained_with_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = a_settings_file(tmp_path, "bots:\n  default:\n    persona: Rule: be kind\n")
    printed = command(capsys, "check", settings)
    place = f"{settings}:{settings.read_text().splitlines().index('    persona: Rule: be kind') + 1}:18"
    assert (printed.status, printed.out) == (
        1,
        f'{place} yaml.syntax a text with a colon needs quotes: persona: "…"\n',
    )


def test_a_misspelt_zone_role_or_effect_has_a_suggestion(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    function, tool = tmp_path / "greet.py", tmp_path / "tools.yaml"
    function.write_text(
        "from rollcall import MessageContext, tool_function\n\n"
        "@tool_function('greet', 'Greet all', effect='oncee', roles='moderater', scope='grop', offered_to=['comand'])\n"
        "def greet(context: MessageContext) -> str: ...\n"
    )
    tool.write_text("tools:\n- {name: hi, description: Say hi, effect: reed, roles: admn, cmds: [[echo, hi]]}\n")
    bad = a_settings_file(
        tmp_path,
        "timezone: Europe/Olso\nlanguage: en\nmembers: {'web:main:ann': moderater}\n"
        "functions: {weather: {roles: [admn]}}\nbots: {default: {timezone: shanghai}}\n",
    ).rename(tmp_path / "bad.yaml")
    good = a_settings_file(tmp_path, f"sources: {{python: [{function}], commands: [{tool}]}}\n")
    printed = command(capsys, "check", bad, good).out
    for suggestion in ("Europe/Oslo", "Asia/Shanghai", "moderator", "admin"):
        assert f"; did you mean '{suggestion}'?\n" in printed
    found = [line.split(": ", 1)[1] for line in printed.splitlines() if line.startswith(str(function))]
    assert found == [
        "effect: must be read, idempotent or once, not 'oncee'; did you mean 'once'?",
        "roles: must be member, moderator, admin or owner, not 'moderater'; did you mean 'moderator'?",
        "scope: must be group, private or both, not 'grop'; did you mean 'group'?",
        "offered_to: must be model, command, timer, mcp or api, not 'comand'; did you mean 'command'?",
    ]
    assert "tools[0].effect should be 'read', 'idempotent' or 'once'; did you mean 'read'?" in printed
    assert "tools[0].roles[0] should be 'member', 'moderator', 'admin' or 'owner'; did you mean 'admin'?" in printed


def test_relative_paths_count_from_the_folder_of_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text("async def guard(message, turn, dispatch): return await dispatch()\n")
    (tmp_path / "tools.yaml").write_text("groups: []\n")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "hi.bas").write_text('PARAM name AS STRING LIKE "x"\nTALK "hi"\n')
    settings = a_settings_file(
        tmp_path,
        "sources: {commands: [tools.yaml], basic: [scripts], basic_keywords: [own.py]}\n"
        "filters: {turn: [{python: {file: ./own.py, function: guard}}]}\n",
    )
    printed = command(capsys, "check", settings)
    assert [line for line in printed.out.splitlines() if "functions.unusable" in line] == []
    assert load_settings(settings, {}).sources.basic[0].path == tmp_path / "scripts"


def test_a_path_that_does_not_exist_is_reported_at_its_line_in_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = tmp_path / "own.py"
    own.write_text("")
    settings = a_settings_file(
        tmp_path,
        f"sources:\n  python:\n    - {own}\n    - nowhere\n  commands: [none.yaml]\n"
        "  basic:\n    - {path: nobody, bot: default}\n",
    )
    printed = command(capsys, "check", settings)
    found = [DIAGNOSTIC.match(line) for line in printed.out.splitlines()]
    lines = settings.read_text().splitlines()
    places = [(one["file"], lines[int(one["line"]) - 1].strip()) for one in found if one and "there is no" in one[0]]
    assert places == [
        (str(settings), "- nowhere"),
        (str(settings), "commands: [none.yaml]"),
        (str(settings), "- {path: nobody, bot: default}"),
    ]


def test_a_filter_that_cannot_be_used_is_reported_at_its_line_in_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = tmp_path / "own.py"
    own.write_text("async def guard(message): ...\n")
    for filters, line, problem in (
        ("{python: {file: own.py, function: gard}}", 7, f"filters.turn[1]: {own}: it has no `async def gard`"),
        ("{python: {file: own.py, function: guard}}", 7, f"filters.turn[1]: {own}: `guard` has to take 3 parameters"),
        (
            "{classifier: {file: none.py, function: guard}}",
            7,
            f"filters.turn[1]: {tmp_path / 'none.py'}: there is no such file",
        ),
        (
            "{memory: {}}\n  named:\n    audit: {module: {file: own.py}}",
            9,
            "it has no function filters()",
        ),
    ):
        settings = a_settings_file(tmp_path, f"filters:\n  turn:\n    - blacklist: {{words: [x]}}\n    - {filters}\n")
        printed = command(capsys, "check", settings)
        [found] = printed.out.splitlines()
        assert found.startswith(f"{settings}:{line}:")
        assert found.endswith(problem)


def test_settings_for_a_function_that_does_not_exist_are_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = a_settings_file(tmp_path, "functions: {calculat: {enabled: false}}\n")
    printed = command(capsys, "check", settings)
    assert printed.status == 1
    assert "functions.calculat: there is no function 'calculat'; did you mean 'calculate'?" in printed.out


def test_faults_of_settings_hide_none_of_functions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = a_settings_file(
        tmp_path,
        "timezone: Mars/Base\n"
        "router: {max_round: 3, pinned: [calculat]}\n"
        "schedules: {tea: {chat: 1}}\n"
        "approvals:\n  required:\n  - {functions: [nobody], by: king}\n"
        "functions:\n  calculat: {enabled: false}\n",
    )
    printed = command(capsys, "check", settings)
    lines = settings.read_text().splitlines()
    at = [index for index, line in enumerate(lines, 1) if "calculat" in line]
    found = [one for one in map(DIAGNOSTIC.match, printed.out.splitlines()) if one]
    assert sorted(int(one["line"]) for one in found if one["code"] == "functions.unknown") == at
    assert {one["code"] for one in found} >= {"settings.bad_value", "settings.unknown_key", "settings.missing"}
    assert printed.status == 1


def test_of_functions_that_faulty_settings_do_not_give_nothing_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = a_settings_file(tmp_path, "sources: {python: 5}\nfunctions:\n  own: {enabled: false}\n")
    printed = command(capsys, "check", settings)
    assert printed.status == 1
    assert "functions.unknown" not in printed.out


def test_warnings_alone_are_no_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plain = tmp_path / "plain.py"
    plain.write_text(
        "from function_calls.declaration import tool_function\n"
        "from function_calls.context import MessageContext\n"
        "@tool_function(name='plain')\n"
        "async def plain(context: MessageContext) -> str:\n"
        "    return ''\n"
    )
    printed = command(capsys, "check", a_settings_file(tmp_path, f"sources: {{python: [{plain}]}}\n"))
    assert printed.status == 0
    assert "functions.no_description" in printed.out


def test_a_function_that_cannot_be_used_is_an_error_at_its_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    double = tmp_path / "double.py"
    double.write_text(
        "from function_calls.declaration import tool_function\n"
        "from function_calls.context import MessageContext\n"
        "@tool_function(name='calculate', description='Again')\n"
        "async def again(context: MessageContext) -> str:\n"
        "    return ''\n"
    )
    printed = command(capsys, "check", a_settings_file(tmp_path, f"sources: {{python: [{double}]}}\n"))
    assert printed.status == 1
    assert printed.out.startswith(f"{double}:3:1 functions.taken ")
    assert "calculate.py" in printed.out


def test_the_schema_is_valid_and_admits_the_shipped_settings(capsys: pytest.CaptureFixture[str]) -> None:
    printed = command(capsys, "schema")
    assert printed.status == 0
    validator = jsonschema.validators.validator_for(printed.json)
    validator.check_schema(printed.json)
    shipped = YAML(typ="safe").load(REPOSITORY / "config" / "bot.yaml")
    assert list(validator(printed.json).iter_errors(shipped)) == []
    assert not validator(printed.json).is_valid({**shipped, "router": {"max_rounds": "many"}})


def test_a_fault_of_a_server_of_tools_stands_at_its_place_in_the_settings() -> None:
    text = "mcp:\n  servers:\n    - {name: one, command: [python3]}\n    - {name: two, command: [python3]}\n"
    document = read_yaml(text, "bot.yaml")
    [placed] = at_their_places([problem_at("mcp.servers.two", "it cannot be reached")], document)
    assert str(placed).startswith("bot.yaml:4:7 functions.unusable")


def test_a_bad_value_of_the_environment_names_its_variable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "127.0.0.1:11434/v1")
    printed = command(capsys, "check", a_settings_file(tmp_path, ""))
    assert printed.status == 1
    assert "it comes from the environment variable OPENAI_BASE_URL" in printed.out
