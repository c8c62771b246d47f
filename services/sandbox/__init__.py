"""Child processes.

Isolation, resource limits, working folders of chats, and the operator's policy for programs.
"""
