"""Keywords with an effect.

TALK, HEAR, GET, SAVE and others, one module per subject. Loaded by name; authors can add modules.
"""
