"""The daemon.

Receives messages, runs turns, sends replies, and constructs all of it from the settings. `wiring` constructs, `daemon`
runs, `testing` is for authors' tests. No other floor imports it.
"""

VERSION = "0.1.0"
"""The release version."""
