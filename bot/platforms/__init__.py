"""Networks.

`base` is the port that each adapter implements; an adapter is a module or package and imports no other. Used by wiring
alone.
"""
