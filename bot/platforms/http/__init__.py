"""The HTTP platform.

Messages by POST, replies from a stored feed of events. Built by the web application's wiring.
"""
