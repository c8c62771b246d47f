"""The Model Context Protocol as a client: servers of tools, connections to them, and what they said of each tool."""
