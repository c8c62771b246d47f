"""Several processes on one PostgreSQL database.

Gateways hold the accounts of networks, one process at a time for each, keep the order of each chat, and send. Workers
run the turns. Used by `daemon`, `wiring` and `cli`; uses `engine`, `turns` and `platforms.base`.
"""
