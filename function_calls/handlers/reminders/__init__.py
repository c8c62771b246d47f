"""Reminders and schedules."""
