"""Tools for command tools.

`file`, `human` and `shell`, one module each. Loaded by name; none imports another.
"""
