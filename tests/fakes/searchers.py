"""Responses in the formats of web search services: SearXNG, Perplexity, and models that cite in annotations."""

from __future__ import annotations

from typing import Any

SEARXNG_PATH = "/search"
CHAT_PATH = "/chat/completions"


def searxng_answer() -> dict[str, Any]:
    """Four results: one with markup, one duplicate, one that is no web page."""
    result = {"engine": "duckduckgo", "engines": ["duckduckgo"], "positions": [1], "score": 1.0, "category": "general"}
    return {
        "query": "tall bridge",
        "number_of_results": 0,
        "results": [
            {
                **result,
                "url": "https://bridges.example/tall?utm_source=x",
                "title": "The <b>tallest</b> bridge",
                "content": "It is 343 m high.\n  Built in 2004.",
                "publishedDate": None,
            },
            {**result, "url": "http://www.bridges.example/tall/", "title": "The same page", "content": ""},
            {**result, "url": "magnet:?xt=urn:btih:1", "title": "No page", "content": "x"},
            {**result, "url": "https://list.example/bridges", "title": "", "content": "A list."},
        ],
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": ["tallest bridge in the world"],
        "unresponsive_engines": [["brave", "timeout"]],
    }


def a_completion(content: object, **more: Any) -> dict[str, Any]:
    """A chat completion; `more`: fields of the message."""
    message = {"role": "assistant", "content": content, **more}
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1767600000,
        "model": "sonar",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
    }


def perplexity_answer() -> dict[str, Any]:
    """Three sources; the text refers to the first and the third."""
    sources = [
        {"title": "Millau", "url": "https://bridges.example/millau", "date": "2025-03-01", "snippet": "343 m"},
        {"title": "Nothing", "url": "https://other.example/", "date": None},
        {"title": "Pingtang", "url": "https://bridges.example/pingtang", "date": "2019-12-30"},
    ]
    return {
        **a_completion("The Millau Viaduct is 343 m high.[1] Others are close.[3]"),
        "citations": [source["url"] for source in sources],
        "search_results": sources,
    }


def annotated_answer() -> dict[str, Any]:
    """Two annotations for one page, and one for another."""
    notes = [
        {
            "type": "url_citation",
            "url_citation": {"start_index": 0, "end_index": 5, "title": title, "url": url},
        }
        for title, url in (
            ("Millau", "https://bridges.example/millau?utm_source=openai"),
            ("Millau", "https://bridges.example/millau"),
            ("Heights", "https://list.example/"),
        )
    ]
    return a_completion("343 m, at Millau.", annotations=notes)
