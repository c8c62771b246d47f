"""Schemas and arguments.

JSON Schema of a function, validation, command lines, and definitions in any form as a FunctionSpec.
"""
