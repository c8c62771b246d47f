"""One turn.

Acquire the lease, dispatch to the router, commit the end, and explain past turns. Exceptions become replies here. Used
by the engine through wiring.
"""
