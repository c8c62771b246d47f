```basic
DESCRIPTION "Copied from a chat, fence and all"
TALK "hello"
```
