"""Child processes.

Isolation, limits, folders of files for each chat, and the operator's policy for programs.
"""
