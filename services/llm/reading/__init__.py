"""Answer readers.

Parse bytes to a ModelAnswer or ModelError, without loss or not at all. Used by protocols.
"""
