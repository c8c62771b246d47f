"""The keywords of scripts, one module a subject. Modules of this package are found by themselves; those whose names
begin with `_` hold no keywords."""
