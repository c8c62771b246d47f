"""English times.

Clocks, dates, durations and recurrences. Used by the reader alone.
"""
