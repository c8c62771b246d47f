"""The Mattermost platform.

One instance per server and account, over the REST API and its WebSocket. Built by `rollcall run`.
"""
