"""Words in which a model says that it has changed something: the verbs, what they are about, and how such sentences go.

A strong verb is a claim by itself ("I have banned Bob"). A weak one is about the world only with an object of the world
or of a function ("I have added a reminder"), and not with one of writing ("I have added a comma").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from services.lazy_patterns import lazy_pattern
from services.text_index import listed


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
    """How sentences of one language tell of changes. Each pattern has a group `verb`."""

    first_person: tuple[re.Pattern[str], ...]
    """`I have added …`, and `Added …` at the beginning."""
    promises: tuple[re.Pattern[str], ...]
    """`I will remind you …`: only a function can keep it."""
    passive: tuple[re.Pattern[str], ...]
    """`The reminder has been set`: it may also be what was found."""
    strong: re.Pattern[str]
    """The verbs that are a claim without an object."""
    no_claim: re.Pattern[str]
    """A sentence with one of these is about another time, a condition, the text itself, or denies."""
    done: re.Pattern[str]
    """`Done.`, and nothing else."""
    joint: re.Pattern[str]
    """What stands between two changes of one sentence."""
    subject: str
    """What the second one leaves out."""


def _unnamed(pattern: str) -> str:
    return pattern.replace("?P<verb>", "?:")


HINTS = frozenset([*_STRONG_ENGLISH, *_WEAK_ENGLISH, *_PROMISED_ENGLISH, "mailed", "active", "done", "care"])
"""An English text without any of these claims nothing."""
CHINESE_HINT = lazy_pattern(f"{_STRONG_CHINESE}|{_WEAK_CHINESE}|叫醒|搞定|办好|弄好|办妥")
"""And a Chinese one without this."""


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
"""What can be changed in the world, besides what the functions' own words name. In English as one would write it."""
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
"""What a model makes by writing it: that it was added or changed is no claim about the world."""
