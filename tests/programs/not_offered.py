"""Scenarios of the conformance suite that fail, each with the reason: what is not offered."""

from __future__ import annotations

_ONE_FIELD = "questions of functions are asked one at a time, in a field of the bot's own"
_FIXED = "the suite answers with fields of its own names, which the bot's forms do not have"
_TASKS = "tools do not run as tasks"

SERVER = {
    "completion-complete": "arguments are not completed",
    "resources-subscribe": "resources do not report changes",
    "resources-unsubscribe": "resources do not report changes",
    "prompts-get-embedded-resource": "prompts are examples of functions, which are text",
    "prompts-get-with-image": "prompts are examples of functions, which are text",
    "elicitation-sep1034-defaults": _ONE_FIELD,
    "elicitation-sep1330-enums": _ONE_FIELD,
    "input-required-result-multiple-input-requests": _ONE_FIELD,
    "input-required-result-basic-elicitation": _FIXED,
    "input-required-result-request-state": _FIXED,
    "input-required-result-multi-round": _FIXED,
    "input-required-result-basic-list-roots": "folders of clients are not read",
    "input-required-result-non-tool-request": "prompts ask nothing",
    "server-stateless": "functions fail if a client cannot be asked; the protocol's error for that is not used",
    "json-schema-2020-12": "schemas are built from arguments; the tool of the suite cannot be declared",
    "http-custom-header-server-validation": "no argument is repeated in a header",
    "tasks-lifecycle": _TASKS,
    "tasks-capability-negotiation": _TASKS,
    "tasks-wire-fields": _TASKS,
    "tasks-request-state-removal": _TASKS,
    "tasks-mrtr-input": _TASKS,
    "tasks-request-headers": _TASKS,
    "tasks-dispatch-and-envelope": _TASKS,
    "tasks-required-task-error": _TASKS,
    "tasks-mrtr-composition": _TASKS,
}
"""Scenarios for servers."""
CLIENT = {
    "auth/client-credentials-jwt": "clients authenticate with a secret, not with a signed assertion",
    "auth/enterprise-managed-authorization": "identity providers of companies are not supported",
    "auth/dpop": "tokens are not bound to a key",
    "auth/dpop-nonce": "tokens are not bound to a key",
    "auth/wif-jwt-bearer": "clients authenticate with a secret, not with an assertion of a platform",
}
"""Scenarios for clients."""
