"""Checks before a run.

Permissions, budgets and approvals, in the order used by `invoke`. Used by invocation, the router and
wiring.
"""
