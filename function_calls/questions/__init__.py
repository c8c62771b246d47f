"""Questions that wait for a member.

Confirmations, missing arguments, choices and approvals, and how an answer is read.
"""
