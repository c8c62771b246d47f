"""Runs of a script.

Keywords are answered, HEAR waits for a member, and the state is stored between turns.
"""
