"""Detection of the bot's name in a text, for networks without structured mentions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

import regex

# Scripts without spaces between words: a name may be adjacent to other letters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
_ENDS_UNSPACED = regex.compile(f"[{_UNSPACED}]$")
_LETTER = rf"[^\W{_UNSPACED}]"
_AFTER_A_NAME = re.compile(r"[,，:：、;；.。!！…]*[ \t]*")
_ENDS_A_CLAUSE = ",，.。;；:：!！?？、)）…"

_SENTENCE_STARTS = re.compile(r"(?<![.!?…~～])[.!?…~～]+[)）]*\s+|[。！？]+\s*|\n\s*")
_MOST_SENTENCES = 20
_CLAUSE_CHARS = 300
"""Characters of a clause that are examined, so that the time per message is bounded."""
_QUOTATION = ('"', "“", "„", "「", "『", "«", "'", "‘", "`", ">", "*")
"""A sentence that starts with one of these is quoted and addresses nobody."""

_CALLS = (
    "hey there|hey|hi there|hi|hiya|heya|hello|hallo|yo|oi|ok|okay|dear|psst|please|pls|plz|sorry|excuse me|listen|"
    "嘿|嗨|喂|哈喽|哈啰|哈罗|你好|您好|请问|麻烦|拜托|劳驾|请|好的|好"
)
"""Words before the name that call the bot; removed with it if more text follows."""
_LEADS = (
    "um|uh|erm|hmm|oh|ah|so|well|now|then|and|but|also|say|alright|all right|right|yes|no|yeah|yep|nope|sure|"
    "那么|那|对了|另外|还有"
)
"""Words that also open talk about the bot."""
_GREETINGS = (
    "thank you(?: so much| very much)?|thanks(?: a lot| so much)?|thx|ty|cheers|"
    "(?:good |nice |great |well )(?:morning|afternoon|evening|night|day|bye|bot|job|one|work|done)|goodbye|bye|morning|"
    "welcome(?: back)?|love you|congrats|congratulations|happy birthday|merry christmas|"
    "早上好|上午好|中午好|下午好|晚上好|早安|早|午安|晚安|再见|拜拜|谢谢你?|多谢|感谢你?|辛苦了?|加油|干得好|真棒"
)
_FINITE = (
    "is|are|was|were|isn['’]?t|aren['’]?t|wasn['’]?t|weren['’]?t|has|have|had|does|did|doesn['’]?t|didn['’]?t|never|"
    "always|still|annoys?|sucks?|seems?|looks|keeps?|works?|rocks?|fails?|failed|broke|crashed|takes?|took|comes?|came"
)
_IMPERATIVES = (
    "tell|remind|show|list|add|set|start|stop|cancel|delete|remove|roll|flip|toss|throw|convert|calculate|compute|"
    "work out|translate|search|find|look|check|give|get|make|create|open|close|play|wake|help|send|schedule|"
    "explain|define|summari[sz]e|sum up|count|draw|pick|choose|note|remember|forget|repeat|say|write|read|call|ask|"
    "answer|do|turn|put|mark|move|change|update|rename|snooze|mute|pause|resume|vote|poll|guess|generate|recommend|"
    "suggest|compare|describe|spell|wish|buy|book|order|announce|report|save|keep|clear|reset|undo|redo|sing|plan|"
    "wait|shut up|be quiet|never ?mind|don['’]?t|do not|let me know|let us|let['’]?s"
)
_QUESTION_WORDS = (
    r"what(?:['’]?s|['’]?re)?\b(?!\s+an?\b)|when(?:['’]?s)?\b(?!\s+(?:i|it|he|she|they|we|you)\b)|"
    r"where(?:['’]?s)?\b|who(?:['’]?s|\s+(?:is|was|are|won|has|did|does|will|can|made|said|wants|else)\b)|whose\b|"
    r"which\s+(?!is|was|are|i|we|he|she|they|has|had)\w+|why\b|"
    r"how(?:['’]?s)?\b(?!-|\s+(?:i|it|he|she|they|we)\b)"
)
_INVERSIONS = (
    "(?:can|could|will|would|wo|shall|should|may|might|must)(?:n['’]?t)?\\s+(?:you|u|i|we|it|he|she|they|there|anyone|"
    "anybody|someone|somebody)\\b|"
    "(?:is|are|am|was|were)(?:n['’]?t)?\\s+(?:you|u|i|we|it|there|he|she|they|anyone|anybody|everyone)\\b|"
    "(?:do|does|did|have|has|had)(?:n['’]?t)?\\s+(?:you|u|i|we|he|she|they|anyone|anybody|everyone)\\b|"
    "(?:is|are|was|were|do|does|did|have|has|will|can|should)\\s+(?:it|this|that|these|those|the|my|our|any|all)\\b[^?？]*[?？]|"
    "(?:any|anything|anyone|anybody)\\b[^?？]*[?？]"
)
_SUBJECTS = (
    "weather|forecast|temperature|news|headlines|time|date|todo|todos|to-do|timer|alarm|reminders?|dice|poll|"
    "summary|help|joke"
)
_FAULTS = (
    "broken|wrong|down|late|slow|bad|again|useless|off|weird|funny|sucks?|annoying|annoy|boring|stuck|fine|great|nice|"
    "lol"
)
_REQUEST = re.compile(
    rf"(?:(?:please|pls|plz|kindly|just|also|and|then|now|so|ok|okay|hey|hi|well|oh|um|but|yes|no)[\s,]+)*"
    rf"(?:please|pls|plz|{_QUESTION_WORDS}|{_INVERSIONS}"
    rf"|(?!(?:set|put|read)\b.*\b(?:wrong|yesterday|again|already|earlier|last)\b)"
    rf"(?:{_IMPERATIVES})\b(?!['’-])(?!(?:\s+(?!if|who|what|when|where|which|why|how|that|whether)[\w'’]+){{0,3}}?\s+(?:{_FINITE})\b)"
    rf"|(?:{_SUBJECTS})(?=\s*(?:[?？!！.,]|$)|\s+(?:in|for|at|on|of|about|from|today|tomorrow|tonight|now|please|pls|this|next|\d))"
    rf"(?!.*\b(?:{_FINITE}|{_FAULTS})\b)"
    rf"|(?:weather|forecast|time|news|todo|help|poll|timer)(?:\s+(?!(?:{_FINITE}|{_FAULTS})\b)[\w'’]+){{1,3}}\s*[?？!！.]*$(?<!s)"
    rf"|i(?:['’]?d like| would like| need| want)\b|we need\b|/\w"
    rf"|\d[\d.,]*\s*[-+*/×x%^]"
    rf"|(?:yes|no|ok|okay|sure|hi|hello|hey|bye|sorry|{_GREETINGS})\s*(?:[,!.?…，！。]|$))",
    re.IGNORECASE,
)
"""A clause in English that asks somebody to do or say something."""
_ZH_NUMBER = "[0-9零一二两三四五六七八九十半百]"
_ZH_TIME = (
    "今天|明天|后天|大后天|今晚|明晚|明早|今早|早上|上午|中午|下午|傍晚|晚上|凌晨|半夜|现在|等一?会儿?|待会儿?|一会儿?|"
    f"[上下这本]?(?:周|星期|礼拜)[一二三四五六日天末]|每[天周月年]|{_ZH_NUMBER}+个?(?:点半?|分钟?|刻钟?|小时|天|秒钟?|月|号|日)"
    f"(?:{_ZH_NUMBER}+分?)?(?:之?后|以后|之?前|以前)?|[的在,，\\s:：]"
)
_ZH_VERBS = (
    "请|麻烦|帮(?![了过到])|替我|给(?:我|我们|大家)|告诉(?:我|我们|大家|一下)|提醒(?:我|我们|大家|他|她|一下)|"
    "查(?![了过到出])|搜(?![了过到])|找(?![了过到])|算(?![了过是])|计算|换算|翻译|总结|归纳|设(?![计备])|定(?:个|一个|时)|订|"
    "发起|创建|新建|添加|加(?:个|上|一)|记(?:一下|住|下|录|个)|取消|删除|删掉|清空|列出|显示|看看|看一下|打开|关闭|关掉|停止|"
    "暂停|开始|掷|扔|抛|丢|摇|来(?:个|一|点)|讲(?![了过得])|说(?:个|说|一下)|唱|念|读|推荐|介绍|解释|比较|生成|写(?![了过得])|"
    "画(?![了过得])|播放|播报|通知(?!说)|叫(?:我|大家)|喊我|别(?!人|的)|不用|谢谢|好的"
)
_ZH_ASKS = (
    "天气(?:怎么样|如何|怎样|好不好|好吗|呢|吗)?[？?！!。]*$|气温|几点(?:了|钟|啦)?[？?。]*$|几点(?:日出|日落)|[几多少]+度|"
    "几号(?:了|啊|呀)?[？?。]*$|星期几|周几|礼拜几|下[雨雪]吗|会下[雨雪]|下不下[雨雪]|会不会下|有什么(?:新闻|安排|提醒|待办)|(?:等于|是|合)多少|"
    "多少钱|汇率"
)
_ZH_REQUEST = re.compile(
    rf"(?!的)(?:{_ZH_TIME})*(?:(?:{_ZH_VERBS})(?!\s*[得的过])(?!.*(?:的时候|时我|过[我了]))(?!.*(?<!几点)了[。!！~～]*$)|[你您](?!们)"
    rf"|(?:可以|可不可以|能不能|能|会不会)(?:再|先)?(?:帮|给我|替|提醒我|告诉我|查|算|讲|说|翻译).*[吗么？?]"
    rf"|(?!昨|刚|上次|[是会]更|.{{0,4}}(?:说|讲|觉得|知道|播报))[^，。,；的]{{0,10}}?(?:{_ZH_ASKS}))"
)
"""A clause in Chinese that asks somebody to do or say something, directly after a name."""
_ZH_TO_SOMEBODY = re.compile(
    rf"(?!.*谁)(?:.*(?:帮我|帮忙|帮大家|提醒我|提醒大家|提醒一下|告诉我|给我|能不能|你|您|谢谢|多谢)|.*(?:{_ZH_ASKS})|(?:{_ZH_VERBS}))"
    "|今天有什么"
)
_ZH_ABOUT = re.compile(r"[又很真太也都总就还没不]|[昨刚]|说[得错的]|坏|挂|崩|已经|好像|应该|可能|[是的]")
"""Start of a predicate after the name and a space."""
_APPOSITION = re.compile(
    rf"(?:which|who|(?:the|our|my|an?|this|that)\s+(?:[\w'’-]+\s+){{0,2}}(?:bot|assistant|program)|as\s+(?:you|we|everyone)"
    rf"|on the other hand|however|i (?:think|guess|mean|believe))\b[^,?!]*,"
    rf"\s*(?:\w+\s+)?(?:{_FINITE}|can|could|will|would|should|might|may)\b"
    r"|(?:the|our|my|an?|your)\s+(?:[\w'’-]+\s+){0,2}(?:bot|assistant)\s*(?:[.!]|$)"
    r"|(?:那个|这个|一个|我们的|咱们的)[^，,]{0,6}(?:机器人|助手|bot)",
    re.IGNORECASE,
)
"""Text after a name and a comma that describes the bot."""
_NAMES_A_BOT = re.compile(
    r"(?<!good )(?<!nice )(?<!great )\b(?:bots?|assistant|named?|called)\s*$|机器人\s*$", re.IGNORECASE
)
_COMMAS = (",", "，", "、")
_LIST_ITEM = re.compile(r"[,，、]\s*[A-Z][\w'’-]*\s*$")


class ParsedText(NamedTuple):
    """A text with its mention of the bot removed."""

    mentions_bot: bool
    text: str
    """NFC, without the bot's name if it was mentioned."""


ParseText = Callable[[str], ParsedText]
_BETWEEN = rf"(?:[\s,，!！.…]+|(?=[{_UNSPACED}])|(?<=[{_UNSPACED}]))"
_OPENING = regex.compile(
    rf"\s*(?:(?P<lead>{_LEADS}){_BETWEEN})?(?:(?:(?P<call>{_CALLS})|(?P<greeting>{_GREETINGS})){_BETWEEN})?.",
    regex.IGNORECASE | regex.DOTALL,
)
"""The text from the start of a sentence up to the first character of a name."""
_MARK = re.compile(r"\s*(?:[,，、;；!！?？…：~～]|:(?!\d|//)|\.\.+|[.。]?\s*$)|\s+[-–—]\s")


def mention_parser(names: Sequence[str]) -> ParseText:
    """A pure function that finds out whether a text is addressed to `names` (the bot's name and aliases, any case): as
    `@name` anywhere, or by name at the start of a sentence, at its end after a comma, or between commas. A name without
    punctuation addresses the bot only if a request follows. Raises ValueError without names."""
    known = {unicodedata.normalize("NFC", name).strip() for name in names} - {""}
    if not known:
        raise ValueError("a bot needs at least one name")
    vocatives, any_name = _Vocatives(known), _any_of(known)
    at = regex.compile(rf"(?:(?<!{_LETTER})|(?P<command>(?:^|(?<=\s))/[^\s@＠]+))[@＠]{any_name}", regex.IGNORECASE)

    def hear(text: str) -> ParsedText:
        text = unicodedata.normalize("NFC", text)
        without = None
        if vocatives.name.search(text) is not None:
            without = _without_each(at, text)
            if without is None:
                without = vocatives.removed(text)
        return ParsedText(mentions_bot=without is not None, text=text.strip() if without is None else without)

    return hear


class _Vocatives:
    """Finds a name by which a sentence addresses the bot without `@`."""

    def __init__(self, names: Collection[str]) -> None:
        any_name = _any_of(names)
        self.name = regex.compile(any_name, regex.IGNORECASE)
        self._inside = regex.compile(
            rf"[,，、]\s*(?P<name>{any_name})(?:(?P<end>[\s!！?？.。…~～:;)(-]*\Z)|\s*[,，])", regex.IGNORECASE
        )

    def removed(self, text: str) -> str | None:
        """`text` without the name that addresses the bot; None if no sentence does."""
        plain = text.partition("```")[0]
        starts = [0, *(found.end() for found in _SENTENCE_STARTS.finditer(plain))][:_MOST_SENTENCES]
        for start, end in pairwise((*starts, len(text))):
            if not text[start:end].lstrip().startswith(_QUOTATION):
                without = self._at_head(text, start, end)
                if without is None:
                    without = self._inside_sentence(text, start, end)
                if without is not None:
                    return without
        return None

    def _at_head(self, text: str, start: int, end: int) -> str | None:
        for name in self.name.finditer(text, start, start + _CLAUSE_CHARS):
            opening = _OPENING.fullmatch(text, start, name.start() + 1)
            if opening is not None:
                break
        else:
            return None
        mark = _MARK.match(text, name.end())
        name_end = mark.end() if mark else name.end()
        clause = text[name_end : max(end, name_end)].strip()[:_CLAUSE_CHARS]
        rest = text[name_end:].lstrip("!！?？….").strip()
        asks = _asks(clause)
        if mark is None:
            is_apart = _ENDS_UNSPACED.search(name[0]) and text[name_end : name_end + 1].isspace()
            is_vocative = asks or (is_apart and start == 0 and _ZH_ABOUT.match(clause) is None)
        elif mark[0].strip() in _COMMAS and _APPOSITION.match(clause):
            is_vocative = False
        else:
            is_talk = start or (clause and opening["lead"] and not (opening["call"] or opening["greeting"]))
            is_vocative = asks or not is_talk
        if not is_vocative:
            return None
        spoken = opening["greeting"] or ("" if rest else opening["call"] or opening["lead"] or "")
        left = text[:start] + (f"{spoken}, {rest}" if spoken and rest else spoken or rest)
        return left.strip()

    def _inside_sentence(self, text: str, start: int, end: int) -> str | None:
        sentence = text[start:end].rstrip()
        for found in self._inside.finditer(sentence):
            before = sentence[: found.start()].strip()
            after = sentence[found.end() :].strip()
            if len(before) > _CLAUSE_CHARS or not _speaks_to_somebody(before, sentence):
                continue
            if _NAMES_A_BOT.search(before) or _LIST_ITEM.search(before):
                continue
            if found["end"] is None and (_APPOSITION.match(after) or _is_listed(after)):
                continue
            return _joined(text[: start + found.start("name")], text[start + found.end("name") :]).strip()
        return None


def _asks(clause: str) -> bool:
    """Whether `clause`, the text after a name, is a request or a question."""
    return _REQUEST.match(clause) is not None or _ZH_REQUEST.match(clause) is not None


def _speaks_to_somebody(before: str, sentence: str) -> bool:
    """Whether the text before a name and a comma is a request, a question, a greeting or a call."""
    if re.fullmatch(rf"(?:{_CALLS}|{_LEADS}|{_GREETINGS})", before, re.IGNORECASE):
        return True
    question = before + "?" if sentence.endswith(("?", "？")) else before
    return _REQUEST.match(question) is not None or _ZH_TO_SOMEBODY.match(before) is not None


def _is_listed(after: str) -> bool:
    """Whether the text after a name and a comma continues a list of names."""
    return re.match(r"(?:and|or|but)\b|[A-Z][\w'’-]*(?:\s*[,.]|$)|[和与或]", after) is not None


class Found(NamedTuple):
    """The names that a text mentions."""

    names: tuple[str, ...]
    """In lower case, in order of first occurrence."""
    text: str
    """The text without the mentions."""


def name_finder(names: Collection[str]) -> Callable[[str], Found | None]:
    """A pure function that finds `names` as `@name` in a text, in any case, at word boundaries; None without a match.
    Addresses such as `me@name.org`, `@name:server` and `/@name` do not count."""
    at = regex.compile(
        rf"(?<!{_LETTER})(?<![/.+\-])(?P<command>)[@＠](?P<name>{_any_of(names)})(?![@/:]{_LETTER})", regex.IGNORECASE
    )

    def find(text: str) -> Found | None:
        if "@" not in text and "＠" not in text:
            return None
        found = dict.fromkeys(one["name"].casefold() for one in at.finditer(text))
        without = _without_each(at, text) if found else None
        return None if without is None else Found(tuple(found), without)

    return find


def _any_of(names: Collection[str]) -> str:
    """A pattern of one of `names` at the end of a word, for the module `regex`, which compiles large sets of characters
    much faster than `re`."""
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return rf"(?:{longest_first})(?!(?<={_LETTER})(?:{_LETTER}|[\u0300-\u036f]|[-.'’]{_LETTER}))"


def _without_each(mention: regex.Pattern[str], text: str) -> str | None:
    """`text` without the mentions and the gaps they leave; None if nothing was found."""
    without = text
    while found := mention.search(without):
        without = _joined(without[: found.start()] + (found["command"] or ""), without[found.end() :])
    return without.strip() if without != text else None


def _joined(left: str, right: str) -> str:
    before, after = left.rstrip(" \t"), right.lstrip(" \t")
    if not before or before.endswith("\n"):
        return before + _AFTER_A_NAME.sub("", right, count=1)
    if not after or after[0] in _ENDS_A_CLAUSE or after[0] == "\n":
        return before.rstrip(",， ") + after
    touching = before == left and after == right
    return before + ("" if touching else " ") + after
