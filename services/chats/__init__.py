"""Data stored for members.

Polls, lists, expenses, grants, members' names and zones, and chat history. Used by handlers and the bot.
"""
