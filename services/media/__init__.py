"""Pictures, voice, documents.

Formats of pictures, the reader of documents, and clients of the models that draw, hear and speak.
"""
