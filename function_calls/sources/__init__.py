"""Sources of functions.

Python modules, command tools in YAML, MCP servers. Each publishes snapshots of FunctionSpecs; none imports another.
"""
