"""Command tools: functions that are written down as data and run as commands and Python callables, step by step."""
