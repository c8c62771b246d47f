"""Inbound events.

Normalise, deduplicate, decide with a reason code, commit, acknowledge. Platforms call `Intake.deliver` through their
port.
"""
