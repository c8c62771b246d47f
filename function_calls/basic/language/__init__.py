"""Text to syntax tree.

Lexer, forms of keywords, parser, and the header of a script. Knows no values and no chat.
"""
