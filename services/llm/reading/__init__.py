"""Readers of models' answers.

Bytes to ModelAnswer or ModelError, without loss or not at all. Used by protocols.
"""
