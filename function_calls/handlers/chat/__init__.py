"""Functions about the chat itself and what was said in it: help, settings, rights, history, summary."""
