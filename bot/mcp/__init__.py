"""Our functions as an MCP server.

Over standard input and output and over HTTP. Used by `rollcall mcp` and the web application.
"""
