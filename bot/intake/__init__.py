"""Inbound events.

Normalise, deduplicate, decide with a reason code, commit, acknowledge. Platforms call `Intake.accept` through their
port.
"""
