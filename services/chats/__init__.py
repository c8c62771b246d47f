"""Data stored for members.

Polls, to-do lists, grants, members' names and zones, and chat history. Used by handlers and the bot.
"""
