"""Logs, metrics and records.

Used by wiring, the web application and commands.
"""
