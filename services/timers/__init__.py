"""Reminders and schedules.

Rows, recurrence, and the clock that starts them (apscheduler). Used by handlers and the bot.
"""
