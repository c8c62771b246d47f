"""Understanding without a model.

A message is matched with the functions' example sentences. Also used to search functions.
"""
