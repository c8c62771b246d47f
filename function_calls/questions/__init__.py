"""Questions to members, one module for each kind.

`argument_questions`, `confirm_questions`, `approval_questions` and `input_questions` define how their kind is asked,
how a message answers it, and how the turn is resumed or expires. `resume` dispatches to them for the router; `callers`
does the same for MCP clients, the HTTP API and the command line, which wait synchronously. Used by `checks`,
`invocation`, the router and `bot`; access to runs and to the model's rounds is through the protocols of `waiting_runs`.
"""
