"""Keywords with an effect.

TALK, HEAR, GET, SAVE and the others, one module for each subject. Found by name; authors add their own.
"""
