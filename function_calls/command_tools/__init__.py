"""Functions declared in YAML.

Run as commands and Python callables, step by step. Used by the source of command tools; authors use `request`.
"""
