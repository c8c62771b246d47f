"""One turn.

Lease, dispatch to the router, commit of its end. Exceptions become answers here. Used by the engine through wiring.
"""
