"""Outbox to platform.

Order within a chat, rates, retries, and messages in the form that a network accepts. Used by wiring; platforms are
called through their port.
"""
