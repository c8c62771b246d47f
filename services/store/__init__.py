"""The store.

`port` defines its protocol; a writer commits units of statements in groups. Statements are defined by subject in
`turns` and `chats`.
"""
