"""Schemas and arguments.

JSON Schemas of functions, validation, command lines, and conversion of definitions into FunctionSpecs.
"""
