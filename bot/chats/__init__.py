"""State of one chat.

Settings in force, open questions, notes of scripts, summaries and explanations. Used by intake, turns and wiring.
"""
