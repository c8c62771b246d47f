"""Contents of messages: text with elements in the form of XHTML (https://satori.chat/en-US/protocol/elements.html)."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Sequence
from html import escape, unescape
from typing import NamedTuple

from bot.platforms.markdown import html_of, plain_lines
from function_calls.context import Attachment
from function_calls.spec import Choice

_TAG = re.compile(r"<(/?)([^\s<>/]*)([^<>]*)>")
_ATTRIBUTE = re.compile(r"""([^\s=/]+)=(?:"([^"]*)"|'([^']*)')""")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BUTTONS = re.compile(r"<button(?=[\s>])[^<>]*>[^<>]*</button>|</?button-group\b[^<>]*>")
_BOT = "\0"
_BOT_AND_SPACES = re.compile(rf"[ \t]*{_BOT}[ \t]*")
_FILES = {"img": "image/png", "image": "image/png", "audio": "audio/mpeg", "video": "video/mp4", "file": ""}
"""Elements with a file, and its type if its name does not have one."""
_EMOJI = ("face", "emoji", "mface")
_NAME_CHARS = 100


class Content(NamedTuple):
    """The content of a message."""

    text: str
    """Without the mention of the bot."""
    mentions_bot: bool = False
    mentions: tuple[str, ...] = ()
    """Ids of other members."""
    attachments: tuple[Attachment, ...] = ()
    quote: str | None = None
    """Id of the message that is replied to."""
    quoted: str = ""
    """Its text."""
    quoted_author: tuple[str, str] = ("", "")
    """Id and name of its sender, as far as they are named."""


def parse(content: str, self_id: str) -> Content:
    """The content of a message. `self_id`: id of the bot."""
    pieces: list[str] = []
    quoted: list[str] = []
    mentions: dict[str, None] = {}
    files: list[Attachment] = []
    quote, author, depth, at, link, in_emoji = None, ("", ""), 0, 0, "", False
    for tag in _TAG.finditer(content):
        into = quoted if depth else pieces
        into.append(_clean(unescape(content[at : tag.start()])))
        at, name, opens = tag.end(), tag[2].lower(), not tag[1]
        attrs = {key: unescape(one or other) for key, one, other in _ATTRIBUTE.findall(tag[3])}
        label = _clean(attrs.get("name") or attrs.get("id") or "")
        match name:
            case "quote":
                if opens and not depth:
                    quote = attrs.get("id")
                depth = max(0, depth + (-1 if not opens else 0 if tag[3].endswith("/") else 1))
            case "author" if opens and depth:
                author = (attrs.get("id", ""), label)
            case "br" | "p" | "message" if name == "br" or (into and not "".join(into[-2:]).endswith("\n")):
                into.append("\n")
            case "at" if opens and attrs.get("id") == self_id:
                into.append(_BOT)
            case "at" if opens:
                if attrs.get("id") and not depth:
                    mentions[attrs["id"]] = None
                into.append("@" + (label.lstrip("@") or _clean(attrs.get("role") or attrs.get("type") or "")))
            case "sharp" if opens:
                into.append(f"#{label}")
            case "a":
                if not opens and link and link != into[-1]:
                    into.append(f" ({link})")
                link = _clean(attrs.get("href", "")) if opens else ""
            case _ if name in _EMOJI:
                in_emoji = opens and not tag[3].endswith("/")
                into.append(f"[{label}]" if opens else "")
            case _ if name in _FILES and opens and not depth and not in_emoji:
                files.append(_file(name, attrs))
    pieces.append(_clean(unescape(content[at:])))
    joined = "".join(pieces)
    text = _BOT_AND_SPACES.sub(" ", joined).strip()
    before = "".join(quoted).replace(_BOT, "@").strip()
    return Content(text, _BOT in joined, tuple(mentions), tuple(files), quote, before, author)


def written(text: str, *, markdown: bool, is_plain: bool = False) -> str:
    """A text as content; Markdown becomes elements, or plain text if `is_plain`."""
    if markdown and not is_plain:
        text = html_of(text).replace("<pre>", "<code>").replace("</pre>", "</code>")
    else:
        text = escape("\n".join(plain_lines(text)) if markdown else text, quote=False)
    # Line ends between elements are ignored by gateways.
    return text.replace("\n", "<br/>")


def element(name: str, words: str = "", **attributes: str) -> str:
    """An element with a text in it."""
    inside = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{inside}>{escape(words, quote=False)}</{name}>" if words else f"<{name}{inside}/>"


def buttons(choices: Sequence[Choice], ids: Sequence[str]) -> str:
    """Buttons with the ids `ids`, which come back when they are pressed."""
    pairs = zip(choices, ids, strict=True)
    return "".join(element("button", choice.label, id=id_, type="action") for choice, id_ in pairs)


def without_buttons(content: str) -> str:
    """`content` without buttons."""
    return _BUTTONS.sub("", content)


def _clean(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _file(element_name: str, attrs: dict[str, str]) -> Attachment:
    source = attrs.get("src") or attrs.get("url") or ""
    name = _clean(
        attrs.get("title") or "" if source.startswith("data:") else attrs.get("title") or source.split("?")[0]
    )
    name = re.split(r"[/\\]", name)[-1][-_NAME_CHARS:] or element_name
    declared = source[5:].partition(";")[0] if source.startswith("data:") else ""
    kind = declared or mimetypes.guess_type(name)[0] or _FILES[element_name] or "application/octet-stream"
    return Attachment(name, kind, source if source.startswith("data:") else f"network:{source}")
