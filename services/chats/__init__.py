"""Data that members keep.

Polls, to-do lists, grants, members' names and zones, and the chat's past. Used by handlers and the bot.
"""
