"""Clients of model servers.

One module for each protocol. None imports another; registration imports them by the settings.
"""
