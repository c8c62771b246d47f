"""Data of scripts.

Tables, records, files, memory, and the scripts themselves. Used by BASIC and tool modules.
"""
