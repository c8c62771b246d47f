"""Pictures, voice and documents: recognition of formats, reading of documents, and the models that draw, hear and speak.
Exports its modules. Imported by `function_calls` and `bot`.
"""
