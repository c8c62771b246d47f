"""Built-in functions.

One package per subject. Loaded by name; no package imports another.
"""
