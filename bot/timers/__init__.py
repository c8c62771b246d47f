"""Due timers become turns.

Schedules of the settings become timers. Used by wiring.
"""
