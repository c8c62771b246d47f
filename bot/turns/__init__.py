"""One turn.

Lease, dispatch to the router, commit of its end, and explanations of it. Exceptions become answers here. Used by the
engine through wiring.
"""
