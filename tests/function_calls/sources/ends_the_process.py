"""A module that nobody can import."""

raise SystemExit(1)
