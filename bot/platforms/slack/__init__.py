"""The Slack platform.

One instance per workspace, over Socket Mode. Built by `rollcall run`.
"""
