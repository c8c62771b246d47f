"""Lexer, keyword forms, script header and parser: from script text to the syntax tree.

Independent of runtime values and of chats.
"""
