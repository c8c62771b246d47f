"""A daemon in a separate process, whose network, model and effects are in the test process: the test's record of them
survives a crash of the daemon."""
