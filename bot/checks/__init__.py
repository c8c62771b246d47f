"""Checks without a running daemon.

Settings, functions and scripts, for the commands `check`, `doctor`, `functions` and `call`.
"""
