"""Understanding without a model.

Matches a message against the functions' example sentences. Also used for function search.
"""
