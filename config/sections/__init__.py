"""Sections of the settings.

Imported by `config.settings` and by modules that take one section.
"""
