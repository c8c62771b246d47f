"""MCP server for the bot's functions.

Over standard input and output and over HTTP. Used by `rollcall mcp` and the web application.
"""
