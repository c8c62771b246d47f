"""Rounds with a model.

Shortlist of functions, conversation, requests, progress, and checks of claims against runs. Used by `llm`.
"""
