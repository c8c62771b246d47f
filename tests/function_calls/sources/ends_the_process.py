"""A module that cannot be imported."""

raise SystemExit(1)
