"""State of one chat.

Current settings, open questions, notes of scripts, and summaries. Used by intake, turns and wiring.
"""
