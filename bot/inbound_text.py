"""What people write, made fit to be kept and compared: NFC, no control characters, no lone surrogates, not endless."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from config.texts import Phrases
from function_calls.context import MessageContext

# Replaced rather than dropped: dropping one could turn harmless text into a command.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_LONGEST_NAME = 128


def fit_text(text: str, longest: int) -> str:
    """`text` in NFC, each unfit character replaced by U+FFFD, cut at `longest` characters; CRLF becomes LF."""
    text = text[: longest * 2]
    if text.isascii() and text.isprintable():
        return text[:longest]
    return unicodedata.normalize("NFC", _UNFIT.sub("\ufffd", text.replace("\r\n", "\n")))[:longest]


def fit_name(name: str) -> str:
    """A display name on one line, of at most 128 characters."""
    if name.isascii() and name.isalnum() and len(name) <= _LONGEST_NAME:
        return name
    return " ".join(fit_text(name, _LONGEST_NAME).split()) or "?"


def fit(context: MessageContext, longest: int, texts: Phrases) -> MessageContext:
    """`context` with every text in it made fit; the same object where all was fit already. A text that had to be cut
    says so at its end."""
    given, name, quoted = context.text, fit_name(context.sender.name), context.reply_to
    text = fit_text(given, longest + 1)
    if len(text) > longest or len(given) > 2 * longest:
        text = f"{text[:longest]}\n{texts.say('intake.cut')}"
    if text == given and name == context.sender.name and quoted is None and not context.chat_title:
        return context
    if quoted is not None:
        quoted = replace(quoted, sender_name=fit_name(quoted.sender_name), text=fit_text(quoted.text, longest))
    return replace(
        context,
        text=text,
        sender=replace(context.sender, name=name),
        reply_to=quoted,
        chat_title=fit_name(context.chat_title) if context.chat_title else "",
    )
