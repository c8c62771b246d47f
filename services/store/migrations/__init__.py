"""Schema migrations.

Applied by alembic at the start of a daemon.
"""
