"""Groups of everyday words that stand for one another in a request: an example reaches further than its words."""

from __future__ import annotations

from functools import lru_cache

from services.text_index import is_unspaced, stem

GROUPS: dict[str, str] = {
    "add": "add put append insert include place jot log enter",
    "remove": "remove delete erase clear drop cancel strike scratch cross wipe discard",
    "show": "show display list read view see open print repeat recite",
    "create": "create make start begin build set new",
    "finish": "done finished complete completed finish tick accomplished",
    "close": "close end stop finish",
    "choose": "choose pick select decide",
    "convert": "convert change turn translate conversion equals equal equivalent",
    "compute": "calculate compute solve evaluate figure math maths arithmetic calculation",
    "throw": "roll throw toss cast flip spin",
    "die": "die dice",
    "list": "list lists agenda",
    "task": "todo task tasks chore chores errand errands item items thing things",
    "poll": "poll vote survey ballot",
    "weather": "weather forecast climate conditions temperature rain raining rainy snow snowing snowy snowfall "
    "rainfall drizzle shower showers storm stormy thunderstorm wet dry hail blizzard precipitation sunny sun sunshine "
    "cloud clouds cloudy overcast fog foggy mist misty wind windy breezy humid humidity hurricane tornado hot cold "
    "warm cool chilly freezing hotter colder warmer cooler freeze frost icy heat",
    "outfit": "umbrella raincoat jacket coat sweater boots sunscreen sunglasses",
    "carry": "need take bring wear carry pack",
    "which": "what which",
    "how much": "how much many",
    "where": "in at near around for on",
    "whither": "to into in",
    "clock": "time clock hour",
    "zone": "timezone zone",
    "date": "date day weekday",
    "ability": "help assist commands abilities capabilities features functions skills answer",
    "say": "say tell speak",
    "movie": "movie film",
    "music": "music song songs track tune",
    "news": "news headlines",
    "remind": "remind reminder reminders reminding alert",
    "message": "message text note",
    "meaning": "mean meaning define definition",
    "person": "who whom someone person",
    "place": "place city town country area location",
    "cost": "price cost value worth",
    "shop": "buy purchase order",
    "talk": "chat conversation discussion talk",
    "summary": "summary summarise summarize recap sum",
    "look": "search find look lookup",
    "size": "big large size tall high long",
    "travel": "trip travel flight journey",
    "food": "food meal dish recipe",
}


@lru_cache(maxsize=1)
def _concepts_by_stem() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, words in GROUPS.items():
        for word in words.split():
            found.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


def concepts_of(word_stem: str) -> frozenset[str]:
    """The groups that the word with this stem belongs to; Chinese characters belong to none."""
    if is_unspaced(word_stem):
        return frozenset()
    return _concepts_by_stem().get(word_stem, frozenset())
