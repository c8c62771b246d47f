"""Functions, models and services from the settings.

Used by wiring and by commands that need functions without a daemon.
"""
