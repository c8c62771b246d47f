"""Authors' Python modules.

Modules loaded and reloaded under private names, and the functions defined in them. Used by sources and registration.
"""
