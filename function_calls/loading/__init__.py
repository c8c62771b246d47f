"""Authors' Python modules.

Loaded and reloaded under private names, and the functions found in them. Used by sources and registration.
"""
