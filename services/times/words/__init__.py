"""Shared parts of times.

Tokens, lexicon, holidays and spans, for all languages.
"""
