"""Versions of the schema.

One module for each revision.
"""
