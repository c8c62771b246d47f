"""Changes at run time.

Watched files, reload of settings, dead letters, and notices to operators. Used by wiring and `rollcall run`.
"""
