"""Compiled scripts of a storage and their FunctionSpecs, with diagnostics.

Used by the source of BASIC scripts.
"""
