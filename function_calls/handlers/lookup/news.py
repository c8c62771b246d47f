"""Headlines from the configured feeds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from function_calls.turn import PUBLIC
from services.clock import Clock
from services.refs import ErrorCode, JsonObject
from services.times.time_formatting import ago
from services.web.news import Headlines, News, NewsItem

_NEW_SECONDS = 60

_Topic = Annotated[str, Field(description="Topic or words", max_length=100)]
_Count = Annotated[int | None, Field(description="How many", ge=1, le=20)]


@tool_function(
    description="The latest headlines, of all topics or one",
    examples=(
        "what's in the news",
        "what is new in the world today",
        "show me the latest news",
        "give me {count} headlines",
        "any news about {topic}",
        "what are the latest {topic} headlines",
        "what's the latest news on {topic}",
        "read me today's headlines",
        "get the news from {topic}",
        "what are the headlines from {topic}",
        "show me the {topic} news",
        "tell me the latest breaking news",
        "is there anything interesting in the news today",
        "今天有什么新闻",
        "看看{topic}新闻",
        "有没有关于{topic}的新闻",
        "最新新闻头条",
    ),
    commands=("news", "headlines", "新闻"),
    tags="web",
    touches="reads_outside",
    effect="read",
)
async def news(
    context: MessageContext, topic: _Topic = "", count: _Count = None, *, feeds: News, clock: Clock, call: Call
) -> FunctionResult:
    """Return the newest items and the names of unavailable feeds. Fails if no feed is configured, or if a feed is
    unavailable and the others have no items."""
    if not feeds.usual_count:
        # Offered nevertheless: without this function a model would invent news.
        return FunctionResult.fail(ErrorCode.ENVIRONMENT, call.say("news.no_feeds"))
    found = await feeds.latest(topic, count or feeds.usual_count, call.profile.texts.language)
    notes = _notes(found, call)
    now_ms = clock.now_ms()
    if found.items:
        lines = [_line(number, item, now_ms, call) for number, item in enumerate(found.items, 1)]
        latest = FunctionResult.say("\n".join([*lines, *notes]), data=[_data(item) for item in found.items])
        return replace(latest, metadata={PUBLIC: True})
    if found.broken:
        return FunctionResult.fail(ErrorCode.TRANSIENT, call.say("news.all_down", names=", ".join(found.broken)))
    if not topic:
        return FunctionResult.say("\n".join([call.say("news.none"), *notes]), data=[])
    topics = ", ".join(feeds.topics)
    text = call.say("news.none_about_but" if topics else "news.none_about", topic=topic, topics=topics)
    return FunctionResult.say("\n".join([text, *notes]), data=[])


def _line(number: int, item: NewsItem, now_ms: int, call: Call) -> str:
    if item.at_ms is None:
        line = call.say("news.item_undated", number=number, title=item.title, source=item.source)
    else:
        age = _age((now_ms - item.at_ms) // 1000, call)
        line = call.say("news.item", number=number, title=item.title, source=item.source, age=age)
    return f"{line}\n{item.link}" if item.link else line


def _notes(found: Headlines, call: Call) -> list[str]:
    notes = [call.say("news.stale", name=feed.name, age=_age(int(feed.age_seconds), call)) for feed in found.stale]
    if found.broken and found.items:
        notes.append(call.say("news.broken", names=", ".join(found.broken)))
    return notes


def _age(seconds: int, call: Call) -> str:
    return ago(seconds, call.profile.texts) if seconds >= _NEW_SECONDS else call.say("news.just_now")


def _data(item: NewsItem) -> JsonObject:
    at = None if item.at_ms is None else datetime.fromtimestamp(item.at_ms / 1000, UTC)
    return {
        "title": item.title,
        "source": item.source,
        "published": at.isoformat(timespec="minutes") if at else None,
        "link": item.link,
        "summary": item.summary,
    }
