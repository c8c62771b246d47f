"""The store.

`port` is its protocol; a writer commits units of statements in groups. Statements are by subject in `turns` and
`chats`.
"""
