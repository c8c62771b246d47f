"""How many tokens a text is for a language model, estimated without its tokeniser."""

from __future__ import annotations


def estimated_tokens(text: str) -> int:
    """About 4 letters of English a token, one character of Chinese, Japanese or Korean, and 1.6 letters of alphabets
    between them: the bytes of UTF-8 tell these apart, and take no look-up."""
    letters = len(text)
    size = letters if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (3 * size - letters + 7) // 8
