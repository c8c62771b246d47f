"""Inbound events.

Normalise, deduplicate, decide with a reason code, commit, acknowledge. `Intake.deliver` is called by platforms
through their port.
"""
