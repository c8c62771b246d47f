"""Virtual machine.

Code generation from the syntax tree, and execution in steps. Its state is plain data whenever it stops at a keyword.
"""
