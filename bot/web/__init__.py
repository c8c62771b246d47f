"""The web application.

Chat page, routes of platforms, MCP, probes and metrics, with limits on connections. Used by `rollcall run`.
"""
