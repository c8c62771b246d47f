"""Filters of turns, rounds and calls.

`turn`, `round` and `call` are for authors; `builtin` has those that the settings name.
"""
