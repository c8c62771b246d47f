"""Queue of turns.

One at a time within a chat, chats in parallel, with limits. Used by intake, turns and wiring.
"""
