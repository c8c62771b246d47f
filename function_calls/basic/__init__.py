"""The BASIC language: from the text of a script to a run of it. Knows no chat, no store and no network.

    text → lexer → parser (expressions, statements, forms of keywords) → nodes → code → machine

What a script wants of the world is a keyword: the machine stops at it, says what is wanted, and goes on with what it is
given. A run's state is plain data at every such moment."""
