"""Commands of `rollcall`.

One module per command or subject, with `add_options(parser)`, imported by name when it is used; `options` is shared.
"""
