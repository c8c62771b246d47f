"""Detection of a model's claims of actions, compared with the actual effects of functions."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from function_calls.registry import BotFunctions
from function_calls.spec import FunctionResult, FunctionSpec, Message
from function_calls.turn import Turn
from services.llm.model import ModelMessage
from services.patterns import lazy_pattern
from services.refs import Effect, JsonObject
from services.text_index import is_unspaced, listed, stem, terms


def _any(words: Sequence[str]) -> str:
    return "(?:" + "|".join(sorted(words, key=len, reverse=True)) + ")"


_STRONG_ENGLISH = listed("""
    scheduled rescheduled booked rebooked reserved cancelled canceled reminded notified alerted emailed e-mailed texted
    messaged pinged muted unmuted kicked banned unbanned pinned unpinned subscribed unsubscribed enabled disabled
    activated deactivated configured installed deployed uploaded published registered paid refunded ordered reordered
    purchased bought transferred submitted archived invited deleted erased logged saved sent forwarded integrated
    promoted demoted
    """)
_WEAK_ENGLISH = listed("""
    set added created made removed updated changed put started closed opened moved renamed marked cleared noted written
    assigned stored completed placed arranged generated edited modified voted confirmed launched stopped locked unlocked
    shared granted revoked recorded posted snoozed renewed extended reset adjusted turned switched checked crossed
    ticked ended dropped
    """)
_PROMISED_ENGLISH = listed("remind notify ping alert wake email text")
_STRONG, _WEAK, _PROMISED = _any(_STRONG_ENGLISH), _any(_WEAK_ENGLISH), _any(_PROMISED_ENGLISH)
_VERB = f"(?P<verb>{_STRONG}|{_WEAK})"
_ADVERBS = r"(?:(?:now|just|already|also|then|successfully|gone ahead and|gone and|automatically|manually)\s+)*"
_CLAUSE = r"(?:^|(?<=[,;:(—–])|(?<=\band)|(?<=\bbut)|(?<=\bso)|(?<=\bthen))\W*+"
_BEGINNING = r"(?:^|(?<=,\sand\s)|(?<=;\s))\W*+(?:\w+[!.,]\s+)?"

_STRONG_CHINESE = (
    "预订|预约|预定|取消|删除|删掉|移除|提醒|通知|发送|发给|发出|发到|禁言|踢出|踢掉|封禁|拉黑|置顶|安排|提交|下单|"
    "支付|付款|退款|转账|开启|关闭|启用|停用|保存|记录|记下|登记|注册|邀请|发布|上传|订阅|退订|投票|配置"
)
_WEAK_CHINESE = (
    "设置|设定|设|添加|加入|加到|加上|加|创建|建立|新建|建|更新|修改|更改|标记|移动|重命名|清空|清除|生成|完成|调整|改"
)
_VERB_CHINESE = f"(?P<verb>{_STRONG_CHINESE}|{_WEAK_CHINESE})"
_FOR_WHOM = r"(?:帮|给|为|替|向)(?:你们|您|你|大家|他们|他|她|群里)?"
_ADVERBS_CHINESE = rf"(?:现在|刚刚|刚才|刚|已经|已|都|也|就|成功|{_FOR_WHOM})*+"
_WITHIN = "[^，。！？\n]"


class Forms(NamedTuple):
    """Patterns for claims of changes in one language. Each pattern has a group `verb`."""

    first_person: tuple[re.Pattern[str], ...]
    """`I have added …`, and `Added …` at the start of a sentence."""
    promises: tuple[re.Pattern[str], ...]
    """`I will remind you …`: only a function can fulfil it."""
    passive: tuple[re.Pattern[str], ...]
    """`The reminder has been set`: possibly a lookup result."""
    strong: re.Pattern[str]
    """Verbs that form a claim without an object."""
    no_claim: re.Pattern[str]
    """Marks sentences about another time, a condition or the text itself, and negations; these claim nothing."""
    done: re.Pattern[str]
    """`Done.` as the whole sentence."""
    joint: re.Pattern[str]
    """Separator of two changes in one sentence."""
    subject: str
    """Subject to prepend to the second change."""


def _unnamed(pattern: str) -> str:
    return pattern.replace("?P<verb>", "?:")


HINTS = frozenset([*_STRONG_ENGLISH, *_WEAK_ENGLISH, *_PROMISED_ENGLISH, "mailed", "active", "done", "care"])
"""Every English claim contains at least one of these words."""
CHINESE_HINT = lazy_pattern(f"{_STRONG_CHINESE}|{_WEAK_CHINESE}|叫醒|搞定|办好|弄好|办妥")
"""Every Chinese claim matches this."""


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(lazy_pattern(pattern, re.IGNORECASE) for pattern in patterns)


ENGLISH = Forms(
    first_person=_compiled(
        rf"{_CLAUSE}(?:we|I)(?:['’]ve|\s+have)?\s+{_ADVERBS}{_VERB}\b",
        rf"^\W*{_ADVERBS}(?!(?:set|put|reset)\b){_VERB}\b(?!\s+by\b)",
    ),
    promises=_compiled(
        rf"{_CLAUSE}I(?:['’]ll|\s+will)\s+(?:\w+\s+)?(?P<verb>{_PROMISED})\s+@?\w+\b",
    ),
    passive=_compiled(
        rf"{_BEGINNING}[\w'’#\"“”@ ()/-]{{1,120}}?\s+(?:has|have)\s+{_ADVERBS}been\s+(?:\w+ly\s+)?{_VERB}\b(?!\s+by\b)",
        rf"{_BEGINNING}(?:the|your|our|this|that|a|an|all|both|it|they)\b[^,;:]{{0,80}}?\s+(?:is|are)\s+"
        r"(?:now\s+(?:\w+ly\s+)?)?(?P<verb>set|scheduled|booked|confirmed|cancelled|canceled|muted|banned|pinned|"
        r"enabled|disabled|active)\b(?!\s+by\b)",
        r"^\W*(?:your\s+|the\s+)?[\w-]+(?:\s+[\w-]+)?\s+(?P<verb>set|added|created|sent|scheduled|saved|deleted|"
        r"removed|cancelled|canceled|updated|booked|recorded|confirmed)(?:\s+(?:for|to|successfully|at|on)\b|\W*$)",
    ),
    strong=lazy_pattern(_STRONG, re.IGNORECASE),
    no_claim=lazy_pattern(
        r"\b(?:earlier|yesterday|ago|previously|last\s+\w+|before|would|could|might|should|if|unless|once\s+you|want|"
        r"not|never|nothing|cannot|can['’]?t|couldn['’]?t|didn['’]?t|haven['’]?t|hasn['’]?t|no\s+longer|example|"
        r"below|above|following|as\s+follows|pretend|imagine)\b",
        re.IGNORECASE,
    ),
    done=lazy_pattern(
        r"^\W*(?:(?:ok|okay|sure|great|alright|yes)\W+)?(?:all\s+|it['’]?s\s+|that['’]?s\s+)?"
        r"(?:done|all\s+set|taken\s+care\s+of)\W*$",
        re.IGNORECASE,
    ),
    joint=lazy_pattern(
        rf"(?:,|\band\b|\bthen\b)++\s*+(?=(?:I(?:['’]ve|\s+have)?\s+)?{_ADVERBS}{_unnamed(_VERB)}\b)", re.IGNORECASE
    ),
    subject="I ",
)

CHINESE = Forms(
    first_person=_compiled(
        rf"我(?:们)?{_ADVERBS_CHINESE}(?:[把在]{_WITHIN}{{1,20}}?{_ADVERBS_CHINESE})?{_VERB_CHINESE}{_WITHIN}{{0,4}}?[了好完]",
        rf"我(?:们)?(?:现在|刚刚|刚)?已经?{_WITHIN}{{0,16}}?{_VERB_CHINESE}",
        rf"^\W*(?:好的?|没问题|可以|收到)?\W*(?:已经?|刚刚|成功)++(?:{_FOR_WHOM})?{_WITHIN}{{0,24}}?{_VERB_CHINESE}",
    ),
    promises=_compiled(
        rf"我(?:到时候?|届时)?(?:会|将){_WITHIN}{{0,16}}?(?P<verb>提醒|通知|叫醒)(?:你们|您|你|大家|他|她)",
    ),
    passive=_compiled(
        rf"{_WITHIN}{{1,24}}?(?<![你您他她们])(?:已经?|都)(?:成功)?(?:被)?{_VERB_CHINESE}",
        rf"{_VERB_CHINESE}(?:成功|完成|完毕|好了|完了|好啦)",
    ),
    strong=lazy_pattern(_STRONG_CHINESE),
    no_claim=lazy_pattern(
        "昨天|前天|之前|以前|上次|上周|刚才|如果|要是|假如|的话|没有|没能|还没|未能|尚未|并未|无法|不能|不会|不要|下面|以下|"
        "如下|上面|吗|是否|例如|比如"
    ),
    done=lazy_pattern(r"^\W*(?:好的?|没问题|OK|可以)?\W*(?:都|已经?|全部)?(?:搞定|完成|办好|弄好|办妥)(?:了|啦)?\W*$"),
    joint=lazy_pattern("[，,](?:并且?|还|同时|也|而且)?|并且?|同时"),
    subject="我已经",
)

WORLD = frozenset(
    listed("""
    reminder alarm timer calendar event appointment meeting email mail message invitation invite todo task list
    checklist shopping poll vote group channel member user role notification order ticket booking reservation payment
    subscription account setting settings playlist note entry schedule backup alert dashboard rental delivery flight
    room device light
    """)
)
"""Objects in the world that can be changed, in addition to the functions' own words; English in dictionary form."""
WORLD_CHINESE = frozenset(
    listed("""
    提醒 闹钟 定时 日程 日历 会议 邮件 消息 短信 邀请 待办 任务 清单 列表 投票 频道 成员 通知 订单 机票 车票 预订 预约
    账户 账号 歌单 设备 便签 笔记 备忘 事项 警报 备份 系统 参数
    """)
)
WRITING = frozenset(
    listed("""
    comma sentence paragraph word words text code variable line poem story essay draft version translation summary
    recipe answer explanation typo spelling phrase bullet section formula step detail haiku joke title headline
    句子 段落 文字 错别字 标点 翻译 诗歌 故事 文章 代码 表格 答案 标题
    """)
)
"""Objects that a model creates by writing; adding or changing them is no claim about the world."""


_SENTENCE = lazy_pattern(r"[^.!?。！？\n…]+(?:[.!?](?=[^\s.!?])[^.!?。！？\n…]*)*[.!?。！？…]*")
_QUOTED = lazy_pattern(
    r"```.*?```|`[^`\n]*`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|「[^」\n]*」|『[^』\n]*』|^>.*$", re.S | re.M
)
_LATIN_WORD = lazy_pattern("[a-z]+")
_CHINESE_LETTER = lazy_pattern("[\u3400-\u9fff]")
_LONGEST = 500
"""Maximum number of characters of a sentence to check."""
_GAPS = lazy_pattern(r"[ \t]{2,}")
_WORLD = frozenset(stem(word) for word in WORLD) | WORLD_CHINESE
_WRITING = frozenset(word if is_unspaced(word) else stem(word) for word in WRITING)


@dataclass(frozen=True, slots=True)
class Act:
    """A successful run of this turn with an effect."""

    spec: FunctionSpec
    arguments: Mapping[str, Any]
    result: FunctionResult | None = None


class Claim(NamedTuple):
    """A statement that something was done."""

    start: int
    end: int
    """Start and end of the whole sentence."""
    objects: frozenset[str]
    """Changed objects, as stems, or as character pairs in Chinese."""
    verb: frozenset[str]
    """The verb, if it is a claim by itself."""


def unfounded(
    text: str,
    specs: tuple[FunctionSpec, ...],
    acts: Sequence[Act],
    *,
    has_read: bool = False,
    earlier_reports: str = "",
) -> list[Claim]:
    """Claims in `text` that no run in `acts` supports. `specs`: all functions. `has_read`: a lookup ran in this turn,
    so sentences like "the poll has been closed" may report its result. `earlier_reports`: of the bot, if
    the message asks about the past."""
    if HINTS.isdisjoint(_LATIN_WORD.findall(text.lower())) and (text.isascii() or not CHINESE_HINT.search(text)):
        return []
    vocabulary = _vocabulary(specs)
    claims = list(_claims(text, vocabulary, has_read=has_read))
    if not claims:
        return []
    done = frozenset[str]().union(*map(_words_of_act, acts))
    reported = _words(earlier_reports)
    nothing = not acts and not has_read
    return [
        claim
        for claim in claims
        if reported.isdisjoint(_words(text[claim.start : claim.end]))
        and not _is_confirmed(claim, done, vocabulary, nothing=nothing)
    ]


def corrected(text: str, claims: Sequence[Claim], correction: str) -> str:
    """`text` with the first claimed sentence replaced by `correction` and the others removed."""
    pieces: list[str] = []
    place = 0
    for number, (start, end) in enumerate(dict.fromkeys((claim.start, claim.end) for claim in claims)):
        pieces += [text[place:start], "" if number else correction]
        place = end
    return _GAPS.sub(" ", "".join([*pieces, text[place:]])).strip()


def _is_confirmed(claim: Claim, done: frozenset[str], vocabulary: frozenset[str], *, nothing: bool) -> bool:
    """Whether a run supports `claim`. `done`: words of the effects. `nothing`: no function returned anything."""
    if not claim.objects | claim.verb:
        return not nothing
    if not done:
        return False
    if not _is_chinese(done) and _is_chinese(claim.objects | claim.verb):
        return True  # the functions' words are not in the chat's language: no comparison is possible
    if (claim.objects | claim.verb) & done:
        return True
    # Another effect happened. The claim may describe it unless its verb belongs to another function.
    return not claim.objects and not claim.verb & vocabulary


def _is_chinese(words: frozenset[str]) -> bool:
    return any(is_unspaced(word) for word in words)


def _claims(text: str, vocabulary: frozenset[str], *, has_read: bool) -> Iterator[Claim]:
    unquoted = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    spans = [(found.start(), found.end()) for found in _SENTENCE.finditer(unquoted) if found[0].strip()]
    for start, end in spans:
        sentence = unquoted[start : min(end, start + _LONGEST)]
        begin = start + len(sentence) - len(sentence.lstrip())
        forms = CHINESE if _CHINESE_LETTER.search(sentence) else ENGLISH
        if sentence.rstrip().endswith(("?", "？")) or forms.no_claim.search(sentence):
            continue
        if len(spans) == 1 and forms.done.search(sentence):
            yield Claim(begin, end, frozenset(), frozenset())
            continue
        first, *more = forms.joint.split(sentence)
        claimed = _claimed(first, forms, vocabulary, has_read=has_read) if more else None
        if claimed is None:
            claimed, more = _claimed(sentence, forms, vocabulary, has_read=has_read), []
        if claimed is not None:
            yield Claim(begin, end, *claimed)
        for part in more:
            claimed = _claimed(forms.subject + part, forms, vocabulary, has_read=True)
            if claimed is not None:
                yield Claim(begin, end, *claimed)


def _claimed(
    clause: str, forms: Forms, vocabulary: frozenset[str], *, has_read: bool
) -> tuple[frozenset[str], frozenset[str]] | None:
    """Changed objects of the clause, and its verb if that is a claim by itself; None if the clause claims nothing."""
    for form in forms.promises:
        for match in form.finditer(clause):
            return _words(match["verb"]), frozenset()
    for form in forms.first_person if has_read else (*forms.first_person, *forms.passive):
        for match in form.finditer(clause):
            verb = _words(match["verb"])
            about = _words(clause[match.start() :]) - verb
            objects = about & _WORLD or about & vocabulary
            if forms.strong.fullmatch(match["verb"]) and not about & _WRITING:
                return objects | verb & _WORLD, verb
            if objects and not about & _WRITING - _WORLD:
                return objects, frozenset()
    return None


def _words(text: str) -> frozenset[str]:
    """Stems and character pairs, without numbers and single characters."""
    plain = text.replace("to-do", "todo").replace("To-do", "todo")
    return frozenset(word for word in terms(plain) if len(word) > 1 and not word.isdigit())


@functools.lru_cache(maxsize=64)
def _vocabulary(specs: tuple[FunctionSpec, ...]) -> frozenset[str]:
    return frozenset[str]().union(*map(_names_of, specs))


def _names_of(spec: FunctionSpec) -> frozenset[str]:
    """Words for the objects of a function with an effect: its names, tags and description."""
    if spec.execution.effect is Effect.READ:
        return frozenset()
    return _words(" ".join([spec.name.replace("_", " "), spec.description, *spec.command.words, *spec.origin.tags]))


@functools.lru_cache(maxsize=4096)
def _words_of(spec: FunctionSpec) -> frozenset[str]:
    return _names_of(spec) | _words(" ".join(spec.prompt.examples))


def _words_of_act(act: Act) -> frozenset[str]:
    texts = [message.text for message in act.result.messages] if act.result else []
    return _words_of(act.spec) | _words(" ".join([*map(str, act.arguments.values()), *texts]))


_ABOUT_THE_PAST = re.compile(
    r"\b(?:have(?:n['’]?t)?\s+you|(?:did(?:n['’]?t)?|has(?:n['’]?t)?|was|were)\s+(?:you|it|that|the|my|our|any\w*))\b"
    r"|了吗|了没|有没有|是不是已经|是否已",
    re.IGNORECASE,
)
_NOTHING_BEFORE = 2
"""Length of a conversation without history: the instructions and the message itself."""
_log = structlog.get_logger("claims")


def false_claims(
    text: str, turn: Turn, acts: Sequence[Act], *, has_read: bool = False, earlier_reports: str = ""
) -> list[Claim]:
    """Claims in `text` that no run of this turn supports."""
    if not text:
        return []
    acts = [*acts, *nested_acts(turn)]
    return unfounded(text, turn.input.functions.specs, acts, has_read=has_read, earlier_reports=earlier_reports)


def earlier_reports(asked: str, conversation: Sequence[ModelMessage]) -> str:
    """Earlier replies of the bot if `asked` is a question about the past, since an answer to "did you add milk?" may
    report an earlier turn; otherwise empty."""
    if len(conversation) <= _NOTHING_BEFORE or not _ABOUT_THE_PAST.search(asked):
        return ""
    return "\n".join(message.content for message in conversation if message.role == "assistant" and not message.calls)


def true_words(text: str, turn: Turn, claims: Sequence[Claim], acts: Sequence[Act]) -> str:
    """`text` with `claims` replaced by a true sentence; `acts`: the effects of this turn."""
    if not claims:
        return text
    _log.warning("claim_corrected", turn=turn.input.id, claims=len(claims), effects=turn.memory.effects)
    key = "claims.unconfirmed" if turn.memory.effects or acts else "claims.nothing_done"
    return corrected(text, claims, turn.input.profile().texts.say(key))


def acts_to_json(acts: Sequence[Act]) -> list[JsonObject]:
    """`acts` as plain data, to store with a question."""
    return [{"function": act.spec.name, "arguments": dict(act.arguments), "said": _texts_of_act(act)} for act in acts]


def acts_from_json(data: Sequence[JsonObject], functions: BotFunctions) -> list[Act]:
    """Restore the acts that `acts_to_json` wrote, except those of functions that no longer exist."""
    acts: list[Act] = []
    for one in data:
        spec = functions.find(one["function"])
        if spec is not None:
            messages = tuple(map(Message, one["said"]))
            acts.append(Act(spec, one["arguments"], FunctionResult(messages=messages)))
    return acts


def _texts_of_act(act: Act) -> list[str]:
    return [message.text for message in act.result.messages] if act.result else []


def nested_acts(turn: Turn) -> list[Act]:
    """Successful effects of nested runs."""
    found: list[Act] = []
    for run in turn.memory.nested.values():
        spec = turn.input.functions.find(run.function)
        if spec is not None and run.result is not None and run.result.ok:
            found.append(Act(spec, {}, run.result))
    return found
