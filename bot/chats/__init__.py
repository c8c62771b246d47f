"""State of one chat.

Settings in force, open questions, notes of scripts, and summaries. Used by intake, turns and wiring.
"""
