"""Built-in functions.

One module for each subject. Loaded by name; none imports another.
"""
