"""Telegram.

One instance per account of the bot. Built by `rollcall run`.
"""
