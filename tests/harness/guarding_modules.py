"""Modules with permission checks, the tests that cover them, and conditions whose removal is harmless and not detected
by tests, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Guarding(NamedTuple):
    """Tests and harmless conditions of a module."""

    tests: tuple[str, ...]
    harmless: Mapping[str, str] = MappingProxyType({})
    """Reason by condition, which is written as "function: condition"."""


def _bot(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/bot/test_{name}.py" for name in names)


def _calls(*names: str) -> tuple[str, ...]:
    folders = [name.rpartition("/") for name in names]
    return tuple(f"tests/function_calls/{folder}{slash}test_{name}.py" for folder, slash, name in folders)


_QUESTIONS = _bot("ends_of_questions", "handler_question_rights", "handler_questions", "nested_questions")
_ANSWERS = (*_QUESTIONS, *_bot("cancelled_runs", "late_answers"), *_calls("answered_questions", "questions"))
_RESUMED = (
    *(*_ANSWERS, *_bot("approval_answers", "approvals", "late_approvals", "mcp_questions", "open_questions")),
    *_bot("resumed_rounds", "waiting_approvals", "yes_to_an_edition"),
    *_calls("answers", "every_approval_check_matters"),
)

GUARDING: Mapping[str, Guarding] = {
    "function_calls/invocation.py": Guarding(
        (
            *(
                *_QUESTIONS,
                *_bot("budgets", "hijacked_model", "rights", "timers", "vouching"),
                *_calls("every_approval_check_matters", "every_check_matters", "filters"),
                *_calls("invocation", "overtaken_runs", "permissions", "questions", "nested_calls", "stored_runs"),
                *_calls("script_keywords/mcp"),
            ),
            *(
                *_QUESTIONS,
                *_bot("at_hand", "basic_calls", "mcp_words", "what_a_run_knows"),
                *_calls("filters", "invocation", "nested_calls"),
            ),
        ),
        {
            "Invoker.__init__: faults": "crashes are tested in separate processes, which the harness does not change",
            "Invoker.__init__: threads": "no caller passes its own threads",
            "Invoker._once: self._chains.get(spec)": "an optimization: the first chain is kept",
            "Invoker.invoke: context.sender.role is not Role.MEMBER": (
                "an optimization: members may not call risky functions, and were refused before"
            ),
            "Invoker._decided: judged is ALLOWED": "an optimization: ALLOWED refuses nothing and writes nothing",
            "Invoker._run: abandoned (2)": "for the type checker: a run of this turn is found in it",
        },
    ),
    "function_calls/call.py": Guarding(
        (
            *_QUESTIONS,
            *_bot("at_hand", "basic_calls", "mcp_words", "what_a_run_knows"),
            *_calls("every_check_matters", "filters", "invocation", "nested_calls"),
        ),
    ),
    "function_calls/checks/permissions.py": Guarding(
        (
            *(
                *_bot("rights", "timers"),
                *_calls("handlers/chat_control", "invocation", "permissions", "remembered_offers", "router"),
                *_calls("every_approval_check_matters", "every_check_matters"),
            ),
            *(*_bot("moderation", "outside_text", "vouching"), *_calls("handlers/reminders", "touches")),
        ),
        {},
    ),
    "function_calls/checks/approvals.py": Guarding(
        (
            *(
                *_bot("approvals", "approvals_in_private", "ends_of_questions", "handler_question_rights"),
                *_bot("hijacked_model", "late_approvals", "vouching", "waiting_approvals"),
                *_calls("approval_rules", "every_approval_check_matters"),
            ),
            *(
                *_bot("handler_question_rights", "vouching"),
                *_calls("every_approval_check_matters", "handlers/reminders"),
            ),
        ),
        {
            "Approvals.decide: terms.grant": "an optimization: no permanent approval has an empty key",
            "Approvals._no_room: one.terms is not None": "for the type checker: only approvals are pending there",
            "Approvals._ruled: len(self._known) >= _REMEMBERED": "a limit for memory: removed entries are found again",
        },
    ),
    "function_calls/spec.py": Guarding(
        (*_bot("approval_answers", "approvals", "approvals_in_private"), *_calls("every_approval_check_matters"))
    ),
    "function_calls/checks/budgets.py": Guarding(
        (
            *(
                *_bot("budget_limits", "budgets"),
                *_calls("handlers/summary", "script_keywords/forms_beyond_the_chat"),
            ),
            *(*_bot("budget_limits", "budgets", "explanations"), *_calls("handlers/summary")),
        ),
        {
            "RequestBudgets.settled: used[share.limit.kind] != share.amount": (
                "saves a write: settling without a difference changes nothing"
            )
        },
    ),
    "function_calls/questions/input_questions.py": Guarding(
        (
            *(*_ANSWERS, *_bot("mcp_questions"), *_calls("handlers/reminders", "nested_calls")),
            *_calls("every_check_matters", "permissions", "tool_modules/human"),
        ),
        {
            "input_question: not too_much": "an optimization: of two reasons to stop a run the log has the first",
            "has_asked: depth": "a nested run has its own path, which is none of the unanswered ones",
        },
    ),
    **dict.fromkeys(
        [
            "function_calls/questions/argument_questions.py",
            "function_calls/questions/confirm_questions.py",
            "function_calls/questions/approval_questions.py",
            "function_calls/questions/callers.py",
            "function_calls/questions/resume.py",
        ],
        Guarding(_RESUMED),
    ),
    "function_calls/questions/waiting_runs.py": Guarding(
        (*_RESUMED, *_calls("every_check_matters", "nested_calls", "permissions", "tool_modules/human")),
        {
            "with_interrupted_run: resumed is None": "a question without a suspended run reports that already",
            "WaitingRun.call: question.nested": "a run that is not nested is refused for the same reason when it runs",
        },
    ),
    "function_calls/outcome.py": Guarding((*_ANSWERS, *_bot("budgets", "timers"), *_calls("permissions", "router"))),
    "function_calls/rounds/progress.py": Guarding(
        (*_ANSWERS, *_bot("budget_limits", "budgets", "explanations", "timers"), *_calls("permissions", "router"))
    ),
    "function_calls/failures.py": Guarding(_calls("invocation")),
    "function_calls/turn.py": Guarding(
        (
            *_QUESTIONS,
            *_bot("outside_text"),
            *_calls("every_check_matters", "invocation", "overtaken_runs", "permissions"),
            *_calls("questions", "nested_calls", "stored_runs", "true_answers"),
        ),
        {
            "TurnMemory.is_from_outside: bool(self.outside)": "an optimization: an empty collection has no match",
        },
    ),
    "bot/intake/intake.py": Guarding(
        _bot("at_hand", "taking"),
        {
            "FunctionMentions.extract: one is not None": "for the type checker: only usable functions are found",
            "FunctionMentions.extract: not names": "an optimization: without names nothing is found",
            'FunctionMentions.extract: "@" not in text and "＠" not in text': "an optimization: a name needs one",
            "FunctionMentions.extract: context.mentions": "an optimization: without mentions no member is meant",
        },
    ),
    "services/chats/member_links.py": Guarding(_bot("member_links")),
    "services/chats/privacy.py": Guarding(_bot("privacy")),
    "bot/mcp/questions.py": Guarding(_bot("mcp_forms", "mcp_questions", "mcp_server")),
    "function_calls/basic/run/script_calls.py": Guarding(
        (
            *(*_bot("basic_calls"), *_calls("script_keywords/mcp")),
            *(
                *_bot("basic_call_values", "basic_calls", "basic_questions"),
                *_calls("script_keywords/mcp", "scripts/handler"),
            ),
        ),
        {
            "call_function: asked.waits is not None (2)": "for the type checker: a resumed script was waiting",
            '_Asked.answered: ""': "for the type checker: a script that has asked resumes with an answer",
            '_resumed_call: ""': "for the type checker: a run resumes with an answer, which may be empty",
        },
    ),
}
