"""The IRC platform.

One instance for each network. Built by `rollcall run`.
"""
