"""Checks before a run.

Permissions, approvals and budgets, in the order in which `invoke` asks. Used by invocation, the router and wiring.
"""
