"""Built-in functions.

One module per subject. Loaded by name; none imports another.
"""
