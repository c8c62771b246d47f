"""Chinese times.

Clocks, dates, durations and recurrences. Used only by the reader.
"""
