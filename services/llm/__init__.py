"""Language models.

`model.ChatModel` is the protocol; retries and failover wrap a model, and registration builds them from the settings.
"""
