"""Due timers become turns.

Schedules in the settings become timers. Used by wiring.
"""
