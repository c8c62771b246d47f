"""Rounds with a model.

Shortlist, conversation, requests, progress, and claims compared with what was done. Used by `llm`.
"""
