"""Tables of turns.

Tables and statements of messages, turns, timers, ledger and outbox. Used by the bot.
"""
