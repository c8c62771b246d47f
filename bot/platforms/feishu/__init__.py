"""The Feishu platform, for Feishu and Lark.

One instance per app, over the open platform's HTTP API, and its long connection or signed requests.
"""
