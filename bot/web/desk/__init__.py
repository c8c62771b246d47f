"""The operators' desk.

Web pages below `/desk` for operators: accounts and sessions, what the bot does and why, and changes with an audit log.
Used by `bot/web/wiring.py`; templates and style are in this folder, texts in `config/texts/desk`.
"""
