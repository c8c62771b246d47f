"""Checks before a run.

Permissions, budgets and approvals, in the order of `invoke`. Used by invocation, the router and wiring.
"""
