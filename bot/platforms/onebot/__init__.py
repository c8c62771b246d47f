"""OneBot v11."""
