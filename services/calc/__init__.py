"""Arithmetic, units and dice.

Used by handlers and BASIC.
"""
