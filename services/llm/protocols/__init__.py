"""Model clients.

One module per protocol. They do not import each other; registration imports them as configured.
"""
