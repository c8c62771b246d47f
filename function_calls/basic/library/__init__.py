"""Compiled scripts as functions.

The scripts of a storage as FunctionSpecs, with their diagnostics. Used by the source of BASIC scripts.
"""
