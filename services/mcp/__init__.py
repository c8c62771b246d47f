"""MCP client.

Connections to servers of tools, and which definitions were accepted. Used by the source of MCP servers and by
`rollcall mcp`.
"""
