"""Tables of chats' data.

Tables and statements of what chats keep. Used by services and the bot.
"""
