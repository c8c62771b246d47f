"""The IRC platform.

One instance per network. Built by `rollcall run`.
"""
