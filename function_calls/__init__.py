"""Selecting and running functions.

The modules of this package itself hold context, spec, call, result, registry, router, llm, invocation and ports. They
know no platform and no store.
"""
