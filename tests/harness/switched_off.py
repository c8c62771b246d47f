"""Show that each requirement of section D has a test that fails when its feature is switched off.

    python -m tests.harness.switched_off             all rows
    python -m tests.harness.switched_off D37 D60     only these

For each row, one place of the product is changed in a copy of the repository, and the tests that are marked with the
row run until one fails, the expected one first. Prints a line of JSON for each row: its ID, whether a test failed, that
test, and the seconds. Exit status 1 if the tests of a row pass or its text does not occur exactly once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.requirements_page import ROOT, SECTIONS, collect
from tests.test_repository import project_files

_FAILED = re.compile(r"^FAILED (\S+::.*?)(?: - .*)?$", re.MULTILINE)
_MOST_SECONDS = 900
"""Limit for the tests of a row."""


class Switch(NamedTuple):
    """A feature and the change that switches it off."""

    file: str
    """File of the product, relative to the repository."""
    source: str
    """Text that occurs exactly once in the file; empty: the file does not exist."""
    instead: str
    """Replacement, or the content of a new file."""
    expected: str
    """The marked test that should fail, relative to tests/; it runs first."""

    def problem(self, root: Path = ROOT) -> str:
        """Why the change cannot be made in `root`; empty if it can."""
        path = root / self.file
        if not self.source:
            return f"{self.file} exists" if path.exists() else ""
        if not path.is_file():
            return f"{self.file} does not exist"
        count = path.read_text(encoding="utf-8").count(self.source)
        return "" if count == 1 else f"{self.source!r} occurs {count} times in {self.file}"

    def changed(self, root: Path = ROOT) -> str:
        """The file's text with the feature switched off."""
        if not self.source:
            return self.instead
        return (root / self.file).read_text(encoding="utf-8").replace(self.source, self.instead)


SWITCHES: dict[str, Switch] = {
    "D1": Switch(
        "function_calls/router.py",
        "import asyncio\n",
        "import asyncio\nimport re\n",
        "function_calls/test_handlers_read_no_text.py::test_choosing_and_running_have_no_table_of_patterns_for_messages",
    ),
    "D2": Switch(
        "function_calls/invocation.py",
        "run = Run(key, spec, arguments, request.path,",
        "run = Run(key, spec, arguments if request.path is Path.MODEL else None, request.path,",
        "function_calls/test_router.py::test_model_command_and_program_run_a_function_alike",
    ),
    "D3": Switch(
        "function_calls/handlers/chat/history.py",
        "async def clear_messages(",
        "async def forget_messages(",
        "bot/cli/test_functions.py::test_the_abilities_of_the_group_bot_that_came_before_are_registered_functions",
    ),
    "D4": Switch(
        "function_calls/handlers/group/poll.py",
        "from function_calls.call import Call\n",
        "from bot.platforms.base import ChatPlatform\nfrom function_calls.call import Call\n",
        "function_calls/test_handlers_read_no_text.py::test_no_handler_imports_the_daemon_or_a_library_of_the_services",
    ),
    "D5": Switch(
        "function_calls/schema/definition.py",
        '    "serial": (Execution, "serial", _flag),\n',
        "",
        "function_calls/test_definition.py::test_each_option_reaches_the_field_that_it_declares",
    ),
    "D6": Switch(
        "function_calls/schema/commands.py",
        "arguments = _named([token for token in tokens if token.key], plan.schemas)",
        "arguments = _named([], plan.schemas)",
        "function_calls/test_commands.py::test_words_become_arguments_by_the_schema",
    ),
    "D7": Switch(
        "function_calls/schema/arguments.py",
        "            if self._is_valid(filled):\n",
        "            if True:\n",
        "function_calls/test_arguments.py::test_what_does_not_fit_is_refused_by_name_with_what_is_allowed",
    ),
    "D8": Switch(
        "function_calls/declaration.py",
        "        setattr(function, _MARK, declaration)\n",
        "",
        "function_calls/test_definition.py::test_adding_a_function_takes_one_decorated_handler_and_one_model",
    ),
    "D9": Switch(
        "function_calls/spec.py",
        '    scope: Scope = "both"',
        '    scope: Scope = "group"',
        "function_calls/test_definition.py::test_a_definition_of_a_name_and_a_handler_has_these_defaults",
    ),
    "D10": Switch(
        "function_calls/router.py",
        "line = turn.input.functions.command_line(context.text, bare=turn.input.addressed)",
        "line = None",
        "function_calls/test_router.py::test_a_command_goes_straight_to_its_function_and_the_rest_to_the_model",
    ),
    "D11": Switch(
        "function_calls/llm.py",
        "for index, call in enumerate(calls):\n            turn.memory.place",
        "for index, call in enumerate(calls[:0]):\n            turn.memory.place",
        "function_calls/test_rounds.py::test_a_result_goes_back_to_the_model_which_then_answers",
    ),
    "D12": Switch(
        "function_calls/schema/arguments.py",
        "                    values[name] = coercion(value)\n",
        "                    coercion(value)\n",
        "function_calls/test_arguments.py::test_what_surely_means_a_value_is_read_as_it",
    ),
    "D13": Switch(
        "function_calls/handlers/small/calculate.py",
        "value = calculate(expression)",
        "value = calculate(context.text)",
        "function_calls/test_handlers_read_no_text.py::test_no_handler_reads_the_text_of_the_message",
    ),
    "D14": Switch(
        "services/llm/offline/offline.py",
        '    if not guesses:\n        return phrases.say("offline.no_model")',
        '    if not guesses:\n        return phrases.say("offline.done")',
        "bot/test_turns.py::test_without_any_model_commands_work_and_the_rest_says_how_to_connect_one",
    ),
    "D15": Switch(
        "function_calls/encodings.py",
        "    if spec.origin.runs:\n",
        "    if False:\n",
        "bot/cli/test_functions.py::test_the_inventory_has_every_function_with_its_callers_place_services_and_manner_of_running",
    ),
    "D16": Switch(
        "bot/registration/models.py",
        "base_url=settings.base_url or (",
        "base_url=(",
        "bot/test_models.py::test_every_protocol_of_the_settings_is_spoken",
    ),
    "D17": Switch(
        "function_calls/router.py",
        "class FunctionCallRouter:\n",
        "def FunctionCallRouter(*given, **named):\n    return _Router(*given, **named)\n\n\nclass _Router:\n",
        "test_house.py::test_public_classes_are_in_their_documented_modules",
    ),
    "D18": Switch(
        "function_calls/schema/definition.py",
        '    "require_at": (Access, "require_at", _flag),\n',
        "",
        "function_calls/test_definition.py::test_every_option_is_read",
    ),
    "D19": Switch(
        "function_calls/registry.py",
        "        if self._owners.keys().isdisjoint(keys):\n",
        "        if True:\n",
        "function_calls/test_registry.py::test_a_name_or_command_taken_twice_is_an_error_that_names_both_places",
    ),
    "D20": Switch(
        "function_calls/schema/schema.py",
        '        if "$ref" in node:\n            return self._inlined(',
        "        if False:\n            return self._inlined(",
        "function_calls/test_schema.py::test_references_within_a_foreign_schema_are_written_out",
    ),
    "D21": Switch(
        "function_calls/schema/schema.py",
        "TypeAdapter(arguments).json_schema(schema_generator=generator)",
        "arguments.model_json_schema(schema_generator=generator)",
        "function_calls/test_schema.py::test_a_dataclass_gives_the_schema_that_its_fields_say",
    ),
    "D22": Switch(
        "function_calls/result.py",
        "return FunctionResult(handled=value)",
        "return FunctionResult()",
        "function_calls/test_router.py::test_a_handler_that_only_says_no_leaves_the_message_to_chat",
    ),
    "D23": Switch(
        "function_calls/outcome.py",
        "return self.kind is not OutcomeKind.FALLBACK",
        "return True",
        "function_calls/test_rounds.py::test_none_leaves_the_message_to_chat",
    ),
    "D24": Switch(
        "function_calls/router.py",
        "            elif not _was_speech(line, outcome, turn):\n",
        "            elif False:\n",
        "bot/test_turns.py::test_a_command_needs_no_model",
    ),
    "D25": Switch(
        "function_calls/checks/permissions.py",
        "        found = [spec for spec in callable_here(context, turn, Path.MODEL) if functions.is_set_up(spec)]\n",
        "        found: list[FunctionSpec] = []\n",
        "function_calls/test_rounds.py::test_the_model_is_offered_what_this_member_may_call_here_and_nothing_else",
    ),
    "D26": Switch(
        "function_calls/encodings.py",
        'return {"type": "function", "function": openai_bare(spec)}',
        "return openai_bare(spec)",
        "function_calls/test_encodings.py::test_every_spelling_is_as_its_golden_file_shows",
    ),
    "D27": Switch(
        "services/llm/reading/openai.py",
        "found = read_calls(message, request_id)",
        "found = read_calls({}, request_id)",
        "services/llm/test_openai_chat.py::test_an_answer_is_read_and_the_request_is_what_was_encoded",
    ),
    "D28": Switch(
        "bot/registration/models.py",
        'return TextProtocol(profile, clock, "xml")',
        "return OpenAIChat(profile, clock)",
        "bot/test_models.py::test_every_protocol_of_the_settings_is_spoken",
    ),
    "D29": Switch(
        "function_calls/llm.py",
        "            if progress.repairs > _REPAIRS:\n",
        "            if False:\n",
        "function_calls/test_rounds.py::test_a_second_faulty_call_ends_in_plain_words_and_nothing_runs",
    ),
    "D30": Switch(
        "config/chat_settings.py",
        '[*_flag("functions_on", own, entries), by_share]',
        "[by_share]",
        "bot/test_chats.py::test_without_function_calling_commands_and_chat_go_on",
    ),
    "D31": Switch(
        "bot/telemetry/records.py",
        '            "outcome": outcome,\n',
        "",
        "bot/test_call_records.py::test_a_run_leaves_a_line_with_everything_about_it",
    ),
    "D32": Switch(
        "function_calls/loading/python_functions.py",
        "self.arguments = ModelArguments(model)",
        "self.arguments = ModelArguments(NoArguments)",
        "function_calls/test_definition.py::test_a_marked_function_is_read_from_its_signature_and_docstring",
    ),
    "D33": Switch(
        "function_calls/loading/python_functions.py",
        "            return (context, arguments)\n",
        "            return (arguments, context)\n",
        "function_calls/handlers/test_dice.py::test_dice_are_rolled_and_each_is_shown",
    ),
    "D34": Switch(
        "function_calls/spec.py",
        "return tuple(file for message in self.messages for file in message.attachments)",
        "return ()",
        "function_calls/test_values.py::test_a_result_gathers_what_its_messages_hold",
    ),
    "D35": Switch(
        "function_calls/handlers/lookup/weather.py",
        "from function_calls.call import Call\n",
        "import sqlalchemy\n\nfrom function_calls.call import Call\n",
        "function_calls/test_handlers_read_no_text.py::test_no_handler_imports_the_daemon_or_a_library_of_the_services",
    ),
    "D36": Switch(
        "function_calls/handlers/small/dice.py",
        "roll = roller.roll(dice)",
        "roll = roller.roll(context.text)",
        "function_calls/test_handlers_read_no_text.py::test_no_handler_reads_the_text_of_the_message",
    ),
    "D37": Switch(
        "function_calls/checks/permissions.py",
        'return Refusal(f"refusals.only_{scope}", scope, _key(spec, setting, "scope"))',
        "return None",
        "function_calls/test_permissions.py::test_what_may_not_be_called_here_is_neither_offered_nor_run",
    ),
    "D38": Switch(
        "bot/turns/turns.py",
        "return explained(await router.run_chat_fallback(context, turn), outcome, turn)",
        "return outcome",
        "bot/test_turns.py::test_the_result_decides_whether_something_is_sent_and_whether_it_is_chat",
    ),
    "D39": Switch(
        "bot/commands/roll.py",
        "",
        '"""A second way to write a command."""\n',
        "test_house.py::test_there_is_no_second_mechanism_or_folder_for_commands",
    ),
    "D40": Switch(
        "function_calls/checks/permissions.py",
        "    if setting.enabled:\n",
        "    if True:\n",
        "bot/test_chats.py::test_a_function_that_is_switched_off_is_neither_offered_nor_run",
    ),
    "D41": Switch(
        "function_calls/handlers/reminders/reminders.py",
        "one.item.time), one.members)\n",
        "one.item.time), one.members)\n            await reminders.create(asker, plans[-1:], call_key=call.key)\n",
        "function_calls/handlers/test_reminders.py::test_of_several_all_are_set_or_none",
    ),
    "D42": Switch(
        "function_calls/declaration.py",
        "Declaration(name or function.__name__, text,",
        "Declaration(function.__name__, text,",
        "function_calls/test_definition.py::test_name_description_and_examples_of_the_decorator_come_before_those_of_the_function",
    ),
    "D43": Switch(
        "function_calls/loading/python_functions.py",
        "parameters=signature.arguments.schema,",
        'parameters={"type": "object", "properties": {}, "required": []},',
        "function_calls/test_definition.py::test_a_marked_function_is_read_from_its_signature_and_docstring",
    ),
    "D44": Switch(
        "function_calls/outcome.py",
        "return TurnOutcome(OutcomeKind.SILENT, reason, detail=detail, error=error)",
        "return TurnOutcome(OutcomeKind.FALLBACK, reason, detail=detail, error=error)",
        "function_calls/test_router.py::test_what_is_left_to_do_follows_from_handled_messages_and_effect",
    ),
    "D45": Switch(
        "function_calls/router.py",
        "        if context.kind is Kind.EXPIRY:\n",
        "        if context.kind is Kind.EXPIRY or context.timer is not None:\n",
        "bot/test_schedule_runs.py::test_a_filter_of_whole_turns_may_stop_it",
    ),
    "D46": Switch(
        "bot/checks/functions_check.py",
        '    if name == "raw_text":\n',
        "    if False:\n",
        "bot/test_selfcheck.py::test_a_function_that_breaks_a_promise_is_found_at_its_place",
    ),
    "D47": Switch(
        "bot/telemetry/records.py",
        '        "request_id": answer.request_id,\n',
        "",
        "bot/test_model_records.py::test_each_answer_is_logged_with_its_request_its_duration_and_its_tokens",
    ),
    "D48": Switch(
        "bot/telemetry/records.py",
        '            "duration_ms": duration_us / 1000,\n            "outcome"',
        '            "outcome"',
        "bot/test_call_records.py::test_a_run_leaves_a_line_with_everything_about_it",
    ),
    "D49": Switch(
        "function_calls/failures.py",
        "id=short_id, turn=turn_id, exc_info=error)",
        "id=short_id, turn=turn_id)",
        "function_calls/test_invocation.py::test_a_strangers_exception_becomes_a_neutral_sentence_with_an_id_and_a_traceback_in_the_log",
    ),
    "D50": Switch(
        "bot/telemetry/records.py",
        "            self._add_failure(line, metadata)\n        self._log.append(line)\n",
        "            self._add_failure(line, metadata)\n",
        "bot/test_call_records.py::test_a_run_leaves_a_line_with_everything_about_it",
    ),
    "D51": Switch(
        "services/llm/protocols/text_protocol.py",
        'return "\\n\\n".join([rules, *(_described(function, write) for function in offer.functions)])',
        "return rules",
        "services/llm/test_text_protocol.py::test_functions_are_told_in_the_instructions_as_the_golden_file_shows",
    ),
    "D52": Switch(
        "function_calls/llm.py",
        "call.name in (NO_FUNCTION, INSUFFICIENT.name):",
        "call.name in ():",
        "function_calls/test_rounds.py::test_none_leaves_the_message_to_chat",
    ),
    "D53": Switch(
        "bot/chats/open_questions.py",
        "asked = self._waiting.get((chat, member))",
        "asked = next((one for (where, _), one in self._waiting.items() if where == chat), None)",
        "bot/test_open_questions.py::test_what_others_say_does_not_fill_the_question",
    ),
    "D54": Switch(
        "function_calls/rounds/conversation.py",
        '{_name(line.sender_name)}{reply}: {text}"',
        '{text}"',
        "function_calls/test_conversation.py::test_the_request_tells_the_time_and_who_said_what_lately",
    ),
    "D55": Switch(
        "function_calls/filters/builtin.py",
        "        if find(context.text):\n",
        "        if False:\n",
        "bot/test_filters.py::test_a_message_with_a_blacklisted_word_reaches_no_model",
    ),
    "D56": Switch(
        "function_calls/handlers/small/dice.py",
        'return FunctionResult.say(text, data={"dice"',
        'return FunctionResult.say("", data={"dice"',
        "function_calls/handlers/test_dice.py::test_dice_are_rolled_and_each_is_shown",
    ),
    "D57": Switch(
        "function_calls/schema/schema.py",
        "    schema = cleaned(generated)\n    everywhere(schema, _normalize_values)\n",
        "    schema = generated\n",
        "function_calls/test_schema.py::test_models_and_dataclasses_give_plain_draft_7",
    ),
    "D58": Switch(
        "function_calls/handlers/lookup/weather.py",
        'FunctionResult.say("\\n".join(lines), data=_data(found, told), attachments=files)',
        "FunctionResult(data=_data(found, told))",
        "function_calls/handlers/test_weather.py::test_the_weather_of_today_and_tomorrow_is_said",
    ),
    "D59": Switch(
        "function_calls/llm.py",
        "faults += progress.note(call, spec, result)\n        progress",
        "faults += 0\n        progress",
        "function_calls/test_rounds.py::test_a_result_goes_back_to_the_model_which_then_answers",
    ),
    "D60": Switch(
        "function_calls/checks/permissions.py",
        "    if not require_at or not context.is_group:\n",
        "    if True:\n",
        "function_calls/test_permissions.py::test_what_may_not_be_called_here_is_neither_offered_nor_run",
    ),
    "D61": Switch(
        "bot/cli/replay.py",
        "return 0 if good == len(lines) else 1",
        "return 0",
        "bot/test_replay.py::test_a_difference_from_what_is_expected_ends_in_one",
    ),
    "D62": Switch(
        "function_calls/rounds/shadow.py",
        "asked = self._pending.pop(turn_id, None)",
        "asked = None",
        "bot/test_shadow.py::test_the_shadow_decides_on_the_same_request_and_neither_runs_nor_says_anything",
    ),
    "D63": Switch(
        "bot/telemetry/metrics.py",
        "        runs.outcomes[outcome] = runs.outcomes.get(outcome, 0) + 1\n",
        "",
        "bot/test_metrics.py::test_success_errors_and_latency_are_shown_for_each_function",
    ),
    "D64": Switch(
        "config/chat_settings.py",
        "    if not settings.router.enabled:\n",
        "    if False:\n",
        "bot/test_rollout.py::test_function_calling_is_flipped_by_a_reload_without_a_restart",
    ),
    "D65": Switch(
        "config/sections/models.py",
        "return int.from_bytes(drawn[:8]) % _SHARES < round(self.percent * _SHARES / 100)",
        "return True",
        "bot/test_rollout.py::test_the_share_is_about_what_was_said",
    ),
    "D66": Switch(
        "function_calls/router.py",
        "return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.FUNCTIONS_OFF)",
        "return TurnOutcome(OutcomeKind.SILENT, ReasonCode.FUNCTIONS_OFF)",
        "bot/test_rollout.py::test_function_calling_is_flipped_by_a_reload_without_a_restart",
    ),
    "D67": Switch(
        "bot/live/settings.py",
        '            self._live.put(replacement, lambda: self._reach("reload.during_swap"))\n',
        "",
        "bot/test_rollout.py::test_a_flip_holds_within_the_turn_that_runs",
    ),
    "D68": Switch(
        "bot/cli/check.py",
        "of(Code.READS_TEXT, Code.RAW_TEXT)",
        "of()",
        "bot/test_selfcheck.py::test_a_function_that_breaks_a_promise_is_found_at_its_place",
    ),
}


def marked_tests(row: str) -> list[str]:
    """Paths of the marked tests of a row, relative to tests/, the expected one first."""
    marked = [f"{file}::{test}".removesuffix("::") for file, test in collect().get(row, ())]
    return sorted(marked, key=lambda test: test != SWITCHES[row].expected)


class Copy:
    """A copy of the repository's files, without the environment and other ignored files."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        self._folder = folder
        self._changes = 0
        for file in project_files():
            path = self.root / file.relative_to(ROOT)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, path)

    def failing_test(self, row: str) -> str:
        """The first failing test of the row with its feature switched off; empty if all pass. Raises TimeoutExpired."""
        switch = SWITCHES[row]
        path = self.root / switch.file
        text = switch.changed(self.root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        # A time of its own, because compiled modules are recognised by time and size.
        self._changes += 1
        os.utime(path, (self._changes, self._changes))
        try:
            found = _FAILED.search(self._run(marked_tests(row)))
            return found[1] if found else ""
        finally:
            path.unlink()
            if switch.source:
                shutil.copy2(ROOT / switch.file, path)

    def _run(self, tests: Sequence[str]) -> str:
        """Output of pytest for the tests, which are stopped at the first failure. Raises TimeoutExpired."""
        options = ["-x", "-q", "-rf", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *options, f"--basetemp={self._folder}/tests"]
        running = subprocess.Popen(
            [*command, *(f"tests/{test}" for test in tests)],
            cwd=self.root,
            env={**os.environ, "PYTHONPYCACHEPREFIX": f"{self._folder}/compiled", "COLUMNS": "1000"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            return running.communicate(timeout=_MOST_SECONDS)[0]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def main(arguments: Sequence[str]) -> int:
    """Switch off the rows in `arguments`, or all. Returns 1 if one is not noticed, 2 for an unknown row."""
    if unknown := [row for row in arguments if row not in SWITCHES]:
        sys.stderr.write(f"no switch for {', '.join(unknown)}\n")
        return 2
    faults = 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        copy = Copy(Path(folder))
        for row in arguments or SWITCHES:
            began = time.monotonic()
            line: dict[str, object] = {"id": row, "ok": False, "failed": ""}
            problem = SWITCHES[row].problem()
            if not problem:
                try:
                    line["failed"] = copy.failing_test(row)
                except subprocess.TimeoutExpired:
                    problem = f"the tests did not end within {_MOST_SECONDS} seconds"
            line |= {"ok": bool(line["failed"]), "seconds": round(time.monotonic() - began, 1)}
            line |= {"problem": problem} if problem else {}
            faults += not line["ok"]
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
            sys.stdout.flush()
    return 1 if faults else 0


def rows() -> list[str]:
    """All IDs of section D."""
    (section,) = (section for section in SECTIONS if section.letter == "D")
    return [f"D{number}" for number in range(1, section.last + 1)]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
