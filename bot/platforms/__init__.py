"""Networks.

`base` is the port that each platform implements, `connection` and `adapter` are the parts that all need, and `contract`
the tests that all pass. Each network is a package, which imports no other. Used by wiring alone.
"""
