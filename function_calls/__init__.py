"""Selecting and running functions.

The spine is here: context, spec, call, result, registry, router, llm, invocation and ports. Knows no platform and no
store.
"""
