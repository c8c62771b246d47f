"""Commands of `rollcall`.

One module for each, with `add_options(parser)`; `options` has what they share. Imported by name when the command is
typed.
"""
