"""Compiled scripts as functions.

Scripts of a folder as FunctionSpecs, with their errors. Used by the source of BASIC scripts.
"""
