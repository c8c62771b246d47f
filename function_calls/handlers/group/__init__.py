"""Things that a group keeps together: polls, to-do and shopping lists, expenses and sign-ups."""
