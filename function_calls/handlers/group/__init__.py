"""Things that a group keeps together: polls and to-do lists."""
