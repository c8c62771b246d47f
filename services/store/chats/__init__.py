"""Tables of chats' data.

Tables and statements of the data stored per chat. Used by services and the bot.
"""
