"""Infrastructure for functions and bot.

Store, language models, web, times, sandbox. Knows chats only by their references, and no functions.
"""
