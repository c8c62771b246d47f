"""Shared parts of time parsing.

Tokens, lexicon, holidays and spans, for all languages.
"""
