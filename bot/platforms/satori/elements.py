"""Contents of messages: text with elements, in a form like XHTML."""

from __future__ import annotations

import mimetypes
import re
from html import escape, unescape
from typing import NamedTuple

from bot.platforms.markdown import html_of, plain_lines
from function_calls.context import Attachment
from services.web.content import media_type_in

_TAG = re.compile(r"<(/?)([^\s<>/]*)([^<>]*)>")
_ATTRIBUTE = re.compile(r"""([^\s=/]+)=(?:"([^"]*)"|'([^']*)')""")
_PLAIN_LINK = re.compile(r"""<a\s[^<>]*href="([^"<>]*)"[^<>]*>(\1)</a>""")
_EMOJI_PICTURE = re.compile(r"<(emoji|face|mface)\b([^<>]*)><img[^<>]*></\1>")
_BOT = "\0"
_BOT_AND_SPACES = re.compile(rf"[ \t]*{_BOT}[ \t]*")
_FILES = {"img": "image/png", "image": "image/png", "audio": "audio/mpeg", "video": "video/mp4", "file": ""}
"""Elements with a file, and its type if its name does not tell it."""
_TYPES = {"image": "img", "audio": "audio", "video": "video"}
_NAME_CHARS = 100


class Content(NamedTuple):
    """The content of a message."""

    text: str
    """Without the mention of the bot."""
    mentions_bot: bool
    mentions: tuple[str, ...]
    """Ids of other members."""
    attachments: tuple[Attachment, ...]
    quote: str
    """Id of the message that is replied to; empty if there is none."""
    quoted: str
    """Its text, as far as it is included."""
    author: str
    """Id of its sender, if it is included."""


def parse(content: str, self_id: str) -> Content:
    """The content of a message. `self_id`: id of the bot."""
    content = _PLAIN_LINK.sub(r"\2", _EMOJI_PICTURE.sub(r"<\1\2/>", content))
    texts: tuple[list[str], list[str]] = ([], [])
    """Parts of the message's text, and parts of the quoted message's text."""
    mentions, files, quote, author = dict[str, None](), list[Attachment](), "", ""
    depth = at = 0
    for tag in _TAG.finditer(content):
        into = texts[depth > 0]
        into.append(unescape(content[at : tag.start()]))
        at, name, opens = tag.end(), tag[2].lower(), not tag[1]
        attrs = {key: unescape(one or other) for key, one, other in _ATTRIBUTE.findall(tag[3])}
        if name == "quote":
            quote = quote or attrs.get("id", "")
            depth = max(0, depth - 1) if not opens else depth if tag[3].endswith("/") else depth + 1
        elif not opens:
            continue
        elif name == "author":
            author = author or attrs.get("id", "")
        elif name in _FILES and not depth:
            files.append(_file(name, attrs))
        elif name == "at" and attrs.get("id") == self_id:
            into.append(_BOT)
        else:
            if name == "at" and attrs.get("id") and not depth:
                mentions[attrs["id"]] = None
            into.append(_words(name, attrs))
    joined, quoted = "".join([*texts[0], unescape(content[at:])]), "".join(texts[1])
    text = _BOT_AND_SPACES.sub(" ", joined).strip()
    return Content(text, _BOT in joined, tuple(mentions), tuple(files), quote, quoted.replace(_BOT, "").strip(), author)


def written(text: str, *, is_markdown: bool, is_plain: bool = False) -> str:
    """A text as content; Markdown becomes elements, or plain text if `is_plain`."""
    if is_markdown and not is_plain:
        text = html_of(text).replace("<pre>", "<code>").replace("</pre>", "</code>")
    else:
        text = escape("\n".join(plain_lines(text)) if is_markdown else text, quote=False)
    # Gateways ignore line ends next to elements.
    return text.replace("\n", "<br/>")


def element(name: str, words: str = "", **attributes: str) -> str:
    """An element with a text in it."""
    inside = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{inside}>{escape(words, quote=False)}</{name}>" if words else f"<{name}{inside}/>"


def file_element(file: Attachment, source: str) -> str:
    """An element with a file. `source`: its URL."""
    return element(_TYPES.get(file.media_type.partition("/")[0], "file"), src=source, title=file.name)


def _words(name: str, attrs: dict[str, str]) -> str:
    """An element as text, without the text in it."""
    label = attrs.get("name") or attrs.get("id") or attrs.get("type") or ""
    match name:
        case "br" | "p" | "message":
            return "\n"
        case "at":
            return "@" + label.lstrip("@")
        case "sharp":
            return f"#{label}"
        case "emoji" | "face" | "mface":
            return f"[{label}]"
        case "a" if "href" in attrs:
            return f"{attrs['href']} "
    return ""


def _file(element_name: str, attrs: dict[str, str]) -> Attachment:
    source = attrs.get("src") or attrs.get("url") or ""
    is_data = source.startswith("data:")
    path = attrs.get("title") or ("" if is_data else source.split("?")[0])
    name = re.split(r"[/\\]", path)[-1][-_NAME_CHARS:] or element_name
    kind = media_type_in(source) if is_data else mimetypes.guess_type(name)[0]
    usual = _FILES[element_name] or "application/octet-stream"
    return Attachment(name, kind or usual, source if is_data else f"network:{source}")
