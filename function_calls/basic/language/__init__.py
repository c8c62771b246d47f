"""Lexer and parser.

From script text to the syntax tree, with keyword forms and the script header. Independent of values and of chats.
"""
