"""MCP client.

Connections to MCP servers, and the tool definitions that were accepted. Used by the function source for MCP servers and
by `rollcall mcp`.
"""
