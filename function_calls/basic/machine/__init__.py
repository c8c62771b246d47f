"""Virtual machine.

Syntax tree to code, and its execution in steps. The state is plain data whenever it stops at a keyword.
"""
