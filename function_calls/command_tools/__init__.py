"""Functions declared in YAML.

Commands and Python callables, run step by step. Used by the YAML source; authors' callables use `request`.
"""
