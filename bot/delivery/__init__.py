"""Outbox to platform.

Order within a chat, rates, retries, and messages in the form that a network takes. Used by wiring; platforms are
called through their port.
"""
