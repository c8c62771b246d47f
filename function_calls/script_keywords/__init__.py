"""The keywords of scripts that the host carries out: a module a subject, found by the package like the handlers."""
