"""Runs of a script.

Execution of keywords, questions of HEAR, and run state that is stored between turns.
"""
