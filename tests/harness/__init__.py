"""A daemon in a process of its own, whose network, model and effects are in the test's process: what the world has seen
is known to the test, whatever becomes of the daemon."""
