"""Commands of `rollcall`.

One module per command, with `add_options(parser)`, imported by name when it is used; `options` is shared.
"""
