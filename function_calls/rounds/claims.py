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


def _any(words: str) -> str:
    return "(?:" + "|".join(sorted(listed(words), key=len, reverse=True)) + ")"


_CHANGED = _any("""
    activated added adjusted archived assigned banned blocked booked cancelled canceled changed cleared closed completed
    configured confirmed created deactivated deleted disabled edited emailed enabled ended forwarded installed invited
    kicked launched locked logged marked messaged moved muted notified opened ordered paid paused pinned posted promoted
    published purchased rebooked recorded refunded registered reminded removed renamed rescheduled reserved resumed
    saved scheduled sent set shared snoozed started stopped submitted subscribed turned unbanned unlocked unmuted
    unpinned unsubscribed updated uploaded
    """)
"""Verbs that claim a change without `I have` or `has been`."""
_TALKED = _any("""
    analyzed analysed answered asked assumed based broken calculated checked chosen collected compared computed
    considered converted corrected counted covered described designed detailed developed discussed enjoyed estimated
    explained explored fetched found gathered guessed heard helped identified included interpreted kept known learned
    liked listed located looked loved meant mentioned misunderstood needed noticed outlined picked provided ranked read
    received retrieved double-checked rephrased reviewed rewritten searched seen shortened shown simplified sorted
    suggested summarized summarised talked thought trained translated tried understood used verified walked
    wanted wondered worked
    aborted agreed declined delayed denied failed hoped interrupted laughed missed refused rejected smiled wished
    """)
"""Verbs of looking up, thinking and writing, which models do without a function, and of failing."""
_PARTICIPLE = (
    rf"(?P<verb>(?!(?:{_TALKED}|been|need|exceed|feed|speed|indeed)\b)"
    r"(?:[a-z-]+ed|set|put|sent|made|bought|paid|begun|done|taken|written|reset|shut|cut|built|told(?!\s+you)|let(?=\s.*\bknow)"
    r"|given(?!\s+(?:you|an?|the|some)\b)))"
)
_ADVERBS = r"(?:(?:now|just|already|also|all|both|then|\w+ly|gone ahead and|gone and)\s+)*"
_SENDABLE = (
    r"(?:\w*mails?|messages?|repl(?:y|ies)|orders?|food|pizzas?|payments?|money|transfers?|invitations?|invites?|requests?"
    r"|letters?|gifts?|invoices?|notifications?)"
)
_PROMISED = _any("remind notify ping alert wake email text remember")

_TALKED_GERMAN = _any("""
    analysiert beantwortet bekommen berechnet beschrieben besprochen ergänzt entwickelt erfahren erhalten erkannt
    erklärt erwähnt gedacht gefragt gefunden gehört gelernt gelesen gemeint gern gerechnet gesagt gesehen gesucht
    geschaut getan gewesen gewusst gut nachgeschaut nachgesehen trainiert verglichen verstanden versucht verwendet
    vergessen überlegt überprüft übersetzt umgerechnet zusammengefasst angesehen aufgelistet herausgefunden
    abgebrochen abgelehnt gescheitert unterbrochen verhindert verweigert zurückgewiesen
    entworfen formuliert genossen geschaut geschehen gefreut geht gerne gesamt getroffen gut notwendig
    """)
_PARTICIPLE_GERMAN = (
    rf"(?P<verb>(?!(?:{_TALKED_GERMAN})\b)"
    r"(?:[a-zäöüß]*ge[a-zäöüß]{2,}(?:t|en)|(?:be|ver|er|ent|über|unter)[a-zäöüß]{3,}(?:t|en)|[a-zäöüß]{2,}iert|"
    r"[a-zäöüß]+(?:be|ver|er|ent)[a-zäöüß]{2,}(?:t|en)))"
)

_STATES_GERMAN = _any("""
    abgehakt abgelegt abgesagt abonniert aktiviert aktualisiert angeheftet angelegt angepinnt aufgenommen ausgeschaltet
    bestellt bestätigt bezahlt deaktiviert eingerichtet eingeschaltet eingestellt eingetragen entfernt erstellt
    freigeschaltet gebucht gelöscht geplant gesendet gesetzt gespeichert gestartet gestellt gestoppt geändert
    hinterlegt hinzugefügt notiert reserviert storniert stummgeschaltet umbenannt verschickt verschoben versendet
    vorgemerkt zurückgesetzt überwiesen
    """)
_SENDABLE_GERMAN = (
    r"(?:\w*mail|\w*nachricht|\w*bestellung|\w*zahlung|\w*überweisung|\w*einladung|\w*antwort|\w*brief|\w*rechnung|"
    r"\w*anfrage|geld|essen|pizza|\w*update|version|release|\w*änderung)"
)

_TALKED_CHINESE = (
    "知|有|婚|查|找|看|了解|理解|明白|知道|收到|学|读|听|分析|计算|比较|翻译|总结|列|解释|回答|搜|获取|识别|推荐|经|"
    "拒|失败|超时|过期|想|觉|认|建议|提到|提供|说|写|整理|准备|试|检|发现|注意|读|排|根据|按"
)
_CHANGED_CHINESE = (
    "(?P<verb>预订|预约|预定|取消|关(?!于|心|注|系|键|机)|删|移除|移出|提醒|通知|发送|发给|发出|发到|发布|禁言|踢|封禁|拉黑|置顶|安排|提交|下单|支付|付款|退款|"
    "转账|开启|打开|关闭|启用|停用|保存|记录|记下|登记|注册|邀请|上传|订阅|退订|投票|配置|设|加|创建|建(?!议|筑)|点(?=了|好)|更新|改|标记|移动|重命名|清空|"
    "清除|生成|完成|调整|调|恢复|执行|暂停|锁|处理|优化|绑定|办|弄|订)"
)
_FOR_WHOM = r"(?:帮|给|为|為|替|向)(?:你们|您|你|大家|他们|他|她|群里)?"
_ADVERBS_CHINESE = rf"(?:现在|刚刚|刚才|刚|已经|已|都|也|就|成功|{_FOR_WHOM})*+"
_WITHIN = "[^，。！？\n]"


class Forms(NamedTuple):
    """Patterns for claims of changes in one language. Each pattern except the last two has a group `verb`."""

    own: tuple[re.Pattern[str], ...]
    """`I have added …`, and promises that only a function can fulfil: `I will remind you …`."""
    reported: tuple[re.Pattern[str], ...]
    """`The reminder has been set`: possibly a lookup result."""
    short: tuple[re.Pattern[str], ...]
    """`Added milk` or `Reminder set` at the start of a sentence, unless a lookup may be reported."""
    no_claim: re.Pattern[str]
    """Marks clauses about another time, a condition or the text itself, and negations; these claim nothing."""
    done: re.Pattern[str]
    """`Done.` or `You're all set` as a whole clause."""


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(lazy_pattern(pattern, re.IGNORECASE) for pattern in patterns)


ENGLISH = Forms(
    own=_compiled(
        rf"^\W*(?:\w+\s+){{0,3}}?(?:we|I)(?:['’]ve|\s+have)\s+{_ADVERBS}{_PARTICIPLE}\b",
        rf"^\W*(?:then\s+)?(?:we|I)\s+(?!stopped(?:\W*$|\s+t?here)){_ADVERBS}{_PARTICIPLE}\b",
        r"^\W*(?:we|I)\s+(?:was|were)\s+able\s+to\s+(?P<verb>\w+)",
        rf"^\W*(?:\w+\s+){{0,3}}?I(?:['’]ll|\s+will)\s+(?:\w+\s+)?(?P<verb>{_PROMISED})\b",
        r"\byou(?:['’]ll|\s+will)\s+(?:be|get|receive)\s+(?:an?\s+)?(?P<verb>reminded|notified|reminder|notification)\b",
        rf"\b(?:has|have|was|were|are|is)\s+(?:now\s+|been\s+)*successfully\s+(?:been\s+)?{_PARTICIPLE}\b",
        rf"\b(?:has|have|was|were|are|is)\s+(?:now\s+|been\s+)*{_PARTICIPLE}\s+successfully\b",
    ),
    reported=_compiled(
        rf"^.{{1,160}}?\s(?:has|have)\s+{_ADVERBS}been\s+{_ADVERBS}{_PARTICIPLE}\b(?!\s+by\b)",
        rf"^.{{0,80}}?(?:\s(?:is|are)|\byou['’]re)\s+now\s+(?:\w+ly\s+)?"
        rf"(?P<verb>{_CHANGED}|active|on|off|in|live|called|named|deployed|stored|joined|signed)\b(?!\s+by\b)",
        rf"^.{{1,80}}?\s(?:is|are)\s+now\s+{_PARTICIPLE}\b(?!\s+by\b)",
        rf"^.{{1,80}}?\s(?:is|are)\s+{_PARTICIPLE}\s+now\W*$",
        r"^\W*(?:the|your|our|this|that|both|it|they)\b.{0,80}?\s+(?:is|are)\s+(?P<verb>off|on|active|live|running)"
        r"(?:\s+now)?\W*$",
        rf"\b(?:{_SENDABLE}\b.{{0,60}}?|it|they)(?:\s|['’]s\s)(?:(?:(?:is|are)\s+)?on\s+(?:its|their|the)\s+way|went\s+(?:out|through))(?P<verb>)",
        r"\b(?:is|are)\s+(?:already\s+)?(?P<verb>[io]n)\s+your\s+(?:\w+\s+)?(?:calendar|list|notes|reminders|cart|agenda)\b",
        r"\b(?P<verb>completed|finished)\s+successfully\b",
        r"^\W*(?:the|your|our|this|that|a|an|all|both|it|they)\b.{0,80}?\s+(?:is|are)\s+"
        r"(?P<verb>set|scheduled|booked|reserved|saved|confirmed|cancelled|canceled|muted|banned|pinned|enabled|disabled|active)\b"
        r"(?!\s+by\b)",
    ),
    short=_compiled(
        rf"^[^\w*-]*{_ADVERBS}(?!(?:set|put|reset)\b)(?P<verb>{_CHANGED})\b(?!\s+(?:by|at)\b)",
        rf"^[^\w*-]*(?:(?!(?:is|are|was|were|be|can|to|has|have|of|that|which|who|you|I|he|she|they|we)\b)"
        rf"\w[\w'’#:-]*\s+){{1,6}}?{_ADVERBS}(?P<verb>{_CHANGED})"
        r"(?:\s+(?:for|to|successfully|at|on|from|off|until)\b|\W*$)",
    ),
    no_claim=lazy_pattern(
        r"\b(?:earlier|yesterday|ago|previously|last\s+(?:week|night|month|year|time|\w+day)|before(?=\W*$)|would|could|might|should|if|unless|once|when|want|"
        r"not|never|nothing|no|cannot|can['’]?t|\w+n['’]t|no\s+longer|example|(?:will|need\w*|ha[ds]|have)\s+to\s+be|"
        r"below|above|as\s+follows|pretend|imagine|please|you(?:['’]ve|\s+have))\b",
        re.IGNORECASE,
    ),
    done=lazy_pattern(
        r"^\W*(?:all\s+|it['’]?s\s+(?:all\s+)?|that['’]?s\s+(?:all\s+)?|you['’]?re\s+|consider\s+it\s+)?"
        r"(?:done|all\s+set|taken\s+care\s+of|mission\s+accomplished|success)\W*$|"
        r"\b(?:everything|all|both|it)\b.{0,40}\b(?:done|taken\s+care\s+of|all\s+set|sorted|handled|completed|success\w*)\W*$",
        re.IGNORECASE,
    ),
)

GERMAN = Forms(
    own=(
        lazy_pattern(
            rf"(?i:\b(?:ich|wir)\s+hab(?:en?)?|\bhab(?:en?)?\s+(?:ich|wir)|^\W*habe?)\b.{{0,160}}?\b{_PARTICIPLE_GERMAN}\W*$"
        ),
        *_compiled(
            r"\bich\s+(?P<verb>erinnere|benachrichtige|wecke|informiere)\s+(?:dich|euch|sie|alle)\b",
            r"\b(?:ich|wir)\s+konnten?\b.{0,160}?\b(?P<verb>\w{3,}en)\W*$",
            r"\b(?:du\s+bekommst|Sie\s+bekommen|ihr\s+bekommt)\b.{0,80}?\b(?P<verb>Erinnerung|Benachrichtigung)\b",
            r"\bich\s+werde\s+(?:dich|euch|sie|alle)\b.{0,80}?\b(?P<verb>erinnern|benachrichtigen|wecken|informieren)\b",
        ),
        lazy_pattern(rf"(?i:\berfolgreich\s+){_PARTICIPLE_GERMAN}|(?i:\bwurden?\s+erfolgreich)"),
    ),
    reported=(
        lazy_pattern(
            rf"(?i:\b(?:wurden?|(?:ist|sind)\s+(?:jetzt|nun|hiermit)))\b(?!.*\b(?:von|durch)\b)"
            rf".{{0,160}}?\b{_PARTICIPLE_GERMAN}(?:\W*$|\s+(?:für|um|am|auf|in|zu|mit)\b)"
        ),
        lazy_pattern(rf"^.{{1,80}}?\b(?:ist|sind)\b.{{0,80}}?\b(?P<verb>{_STATES_GERMAN})\W*$"),
        *_compiled(
            r"\b(?:ist|sind)\s+(?:jetzt|nun|hiermit)\b.{0,40}?\b(?P<verb>aus|an|auf|zu|live|aktiv|offen|stumm)\W*$",
            r"\b(?P<verb>steht|stehen|heißt|heißen|läuft|laufen)\s+(?:jetzt|nun|ab\s+sofort)\b",
            r"\b(?P<verb>steht|stehen)\s+(?:in|auf)\s+(?:deine[mr]|eure[mr]|Ihre[mr]|de[mr])\s+\w*(?:kalender|liste|notizen)\b",
            rf"\b{_SENDABLE_GERMAN}\b.{{0,60}}?\b(?:ist|sind)\s+(?:(?:jetzt|schon|bereits)\s+)?(?P<verb>raus|unterwegs|durch|live)\b",
            r"\b(?:timer|wecker|countdown|stoppuhr|backup)\s+(?P<verb>läuft|laufen)\b",
            rf"\b(?:du\s+hast|Sie\s+haben)\b.{{0,80}}?\b(?:jetzt|nun)\b.{{0,60}}?\b{_PARTICIPLE_GERMAN}\W*$",
        ),
    ),
    short=(
        lazy_pattern(
            r"^(?!.*\b(?:ist|sind|war|hat|hast|habt|wurden?|wird|werden|lassen|lässt|können|müssen|sollen|dürfen|kann|du|ihr|wir|ich|Sie|to|the|is|are|was|be|of|in)\b)"
            rf"\W*(?:[\wäöüÄÖÜß:-]+\s+){{0,8}}?{_PARTICIPLE_GERMAN}\W*$"
        ),
        *_compiled(rf"^\W*{_PARTICIPLE_GERMAN}\W*$"),
    ),
    no_claim=lazy_pattern(
        r"\b(?:nicht|keine?\w*|nie|nichts|noch|wenn|falls|ob|könnt\w*|würd\w*|sollt\w*|soll|gestern|vorhin|früher|letzte\w*|"
        r"möcht\w*|bitte|folgende\w*|mehrere|1[5-9]\d\d(?!\s*(?:euro|€)))\b",
        re.IGNORECASE,
    ),
    done=lazy_pattern(r"^\W*(?:(?:ist|schon|alles|wird)\s+)*(?:erledigt|fertig|gemacht|geschafft)\W*$", re.IGNORECASE),
)

CHINESE = Forms(
    own=_compiled(
        rf"我(?:们)?{_ADVERBS_CHINESE}(?:[把在将]{_WITHIN}{{1,24}}?{_ADVERBS_CHINESE})?{_CHANGED_CHINESE}{_WITHIN}{{0,16}}?[了好完]",
        rf"我(?:们)?(?:刚刚?|已经?|{_FOR_WHOM})++(?:[把将]{_WITHIN}{{1,16}}?)?(?!{_TALKED_CHINESE})(?P<verb>..){_WITHIN}{{0,16}}?了",
        rf"我(?:们)?(?:现在|刚刚|刚)?已经?{_WITHIN}{{0,16}}?{_CHANGED_CHINESE}",
        rf"^\W*(?:已经?|刚刚|成功)++(?:{_FOR_WHOM})?{_WITHIN}{{0,24}}?{_CHANGED_CHINESE}",
        rf"^\W*{_FOR_WHOM}{_WITHIN}{{0,12}}?{_CHANGED_CHINESE}{_WITHIN}{{0,3}}?了",
        rf"我(?:到时候?|届时|稍后)?(?:会|将|再)?{_WITHIN}{{0,16}}?(?P<verb>提醒|通知|叫醒)(?:你们|您|你|大家|他|她)",
        r"已(?:为[您你]|帮[您你])?成功(?P<verb>..)",
    ),
    reported=_compiled(
        rf"^{_WITHIN}{{1,24}}?(?<![你您他她们])已经?(?:{_FOR_WHOM}|成功|被)*+(?!{_TALKED_CHINESE})(?P<verb>..?)",
        rf"^{_WITHIN}{{1,24}}?都(?:{_FOR_WHOM}|成功|被)*+{_CHANGED_CHINESE}{_WITHIN}{{0,2}}?[了好完]",
        rf"^(?!{_WITHIN}{{0,12}}[你您他她它谁])\W*{_WITHIN}{{0,12}}?{_CHANGED_CHINESE}[掉好上]?了(?:[！!。]|\W*$)",
        rf"^(?!{_WITHIN}{{0,12}}[他她店司行统]){_WITHIN}{{0,16}}?会(?:准时|及时|再)?(?P<verb>提醒|通知|叫醒|叫)(?:你们|您|你|大家)",
        r"^\W*(?:计时|录音|下载|备份|播放)(?P<verb>开始)",
        rf"^\W*已经?(?:{_FOR_WHOM}|成功)*+(?!{_TALKED_CHINESE})(?P<verb>..)",
        rf"{_CHANGED_CHINESE}(?:成功|完成|完毕|好了|完了|好啦)",
        r"(?P<verb>成功|顺利)完成",
        r"(?P<verb>调整|更新|修改|更改|设置|设定|改)(?:为|成)",
    ),
    short=(),
    no_claim=lazy_pattern(
        "昨天|前天|之前|以前|上次|上周|刚才|如果|要是|假如|的话|没有|没能|还没|未能|尚未|并未|无法|不能|不会|不要|下面|以下|"
        "如下|上面|吗|是否|例如|比如|可以|(?<![申邀])请(?!求)"
    ),
    done=lazy_pattern(r"^\W*(?:都|已经?|全部|一切)*(?:搞定|完成|办好|弄好|办妥|处理好|处理完)(?:了|啦)?\W*$"),
)

WRITING = frozenset(
    stem(word)
    for word in listed("""
    comma sentence paragraph word words variable line poem story essay draft version translation summary
    recipe answer explanation typo spelling phrase bullet formula haiku joke title headline
    tabelle satz absatz text gedicht geschichte entwurf fassung übersetzung zusammenfassung rezept antwort
    句子 段落 文字 错别 标点 翻译 诗歌 故事 文章 代码 表格 答案 标题
    """)
)
"""Objects that a model creates by writing; adding or changing them is no claim about the world."""

_SENTENCE = lazy_pattern(
    r"[^.!?。！？\n…]+(?:[.!?](?=[^\s.!?]|(?<=\d\.) (?:[JFMASOND]\w+[rilt]|Mai|März)\b)[^.!?。！？\n…]*)*[.!?。！？…]*"
)
_CLAUSE_END = lazy_pattern(
    r"(?:,(?!\d)|[;，；])(?:并且?|还|同时|也|而且)?|:\s|[—–]|\s-\s|并且?|同时|\b(?:and|but|so|then|und|aber|sowie)\b",
    re.IGNORECASE,
)
_SUBJECTS = lazy_pattern(r"^\W*(?:\w+\W+){0,3}?(I(?:['’]ve|\s+have|\s+can)?)\s|^\W*(我(?:们)?已?)")
_QUOTED = lazy_pattern(
    r"```.*?```|`[^`\n]*`|\"[^\"\n]{1,300}\"|[“„][^”“\n]{1,300}[”“]|「[^」\n]*」|『[^』\n]*』|^>.*$", re.S | re.M
)
_CHINESE_LETTER = lazy_pattern("[\u3400-\u9fff]")
_GERMAN = lazy_pattern(
    r"[äöüß]|\b(?:ich|habe?|erledigt|erfolgreich|wurden?|der|das|die|und|ist|sind|für|dein\w*|jetzt|auf|ab|um|von|dem|mit|uhr|du|wir|ein\w*|bei|zum|zur)\b|"
    r"\b(?:\w*ge\w+(?:t|en)|\w+iert|(?:be|er|ent|ver)\w{3,}(?:t|en))\W*$",
    re.IGNORECASE,
)
_NUMBERED = lazy_pattern(r"\bversion\s+v?\d\S*", re.IGNORECASE)
"""A release, which is no text of the model."""
_SOURCED = lazy_pattern(
    r"\baccording\s+to\b(?!\s+your)|\b(?:laut|gemäß)\b(?!\s+(?:dein|Ihre|eure))|(?:根据|按照)(?![你您][们的]?)|显示|据说",
    re.IGNORECASE,
)
"""Names the source of a statement, which is therefore a report of something read."""
_LONGEST = 500
"""Maximum number of characters of a sentence to check."""
_OPENING_WORDS = 2
"""Maximum length of an opening such as `Okay,`, after which a sentence still begins."""
_GAPS = lazy_pattern(r"[ \t]{2,}")
_ADMISSION = lazy_pattern(
    # English
    r"\bsorry,(?!\s+(?:that|it|this)\s+took)|\berrors?\s+occurred\b|"
    r"\b(?:could|can|did|do|does|was|were|has|have|had|is|are|may|wo|will)(?:n['’]?t|\s+not)\b"
    r"(?!\s+(?:worry|forget|hesitate|mind|miss|wait|take\s+long|be\s+long))|"
    r"\b(?:cannot|unable|failed|fails|refused|denied|declined|rejected|unfortunately|unclear|invalid|unavailable|timed\s+out)\b|"
    r"\bnot\s+(?:able|allowed|permitted|possible|sure|clear|certain|done|yet)\b|\bno\s+such\b|\bnothing\s+(?:was|has|changed|happened)\b|"
    r"\bno\s+(?:\w+\s+)?\w+\s+(?:was|were|has|have)\b|\b(?:into|was|is|got|hit|returned|gave|with)\s+an?\s+(?:error|problem)\b|\bwent\s+wrong\b|\byou\s+(?:said\s+no|declined|refused|rejected)\b|\b(?:it|that|this)\s+(?:broke|crashed)\b|\bI\s+stopped(?=\W*$|\s+(?:here|there)\b)|"
    r"\bonly\s+(?:\w+\s+){1,4}?(?:may|can|are\s+allowed)\b|\b(?:need|have|must|has|needs)\s+(?:to\s+)?be\s+(?:an?|the)\b|"
    r"\bI(?:\s+\w+)?\s+need\s+(?:to\s+know|the|your|an?|more)\b|\bplease\s+(?:tell|give|send)\s+me\b(?!.*\belse\b)|"
    # German
    r"\bentschuldigung,|\btut\s+mir\s+leid,|\bfehler\s+aufgetreten\b|"
    r"(?<!vergiss )\bnicht\b(?!\s+(?:nur|vergessen|wundern))|\bnichts\b|\bleider\b|"
    r"\bkein(?:en?|er|em)?\b(?!\s+(?:problem|sorge|thema))|"
    r"fehlgeschlagen|gescheitert|verweigert|abgelehnt|\bunklar\b|\bungewiss\b|\bfehlt\b|\bein(?:en)?\s+fehler\b|\bungültig\b|"
    r"\bnur\s+(?:\w+\s+){1,4}?(?:darf|dürfen|kann|können)\b|\b(?:musst|müssen|müsstest)\b.*\bsein\b|"
    r"\b(?:ich\s+)?(?:brauche|benötige)\b|\b(?:nenn|nenne|gib|sag|sage|schick)\s+mir\b|"
    # Chinese
    r"抱歉，|对不起，|找不到|不支持|没能|没有(?!问题|关系)|没(?:成|办法|做)|无法|不能|未能|失败|不允许|没权限|被拒|拒绝|不确定|不清楚|不知道|做不到|办不到|出错|发生.{0,8}错误|"
    r"只有.*(?:才|可以|能)|(?:还|仍)?需要知道|请(?:告诉|提供|发给|给)我?(?!.*(?:还|别的|其他))",
    re.IGNORECASE,
)
"""Words that say that something was not done, or what is needed to do it."""
_APOLOGY = lazy_pattern(
    r"^\W*(?:(?:I['’]m|so|very|es|tut|mir|leid)\W+)*(?:sorry|apologies|entschuldigung|verzeihung|leid|抱歉|对不起|不好意思)\W*$",
    re.IGNORECASE,
)
"""An apology as the whole text."""
_MORE = lazy_pattern(r"\b(?:else|more|another|further|sonst|noch|weitere\w*)\b|还|别的|其他|其它", re.IGNORECASE)
_CHEER = lazy_pattern(
    r"\bsuccess|everything|all\s+(?:done|set|good)|\bdone\s*[!.]|erledigt|alles|(?<![不未没])(?<!没有)(?<!是否)成功|搞定|全部|办好",
    re.IGNORECASE,
)


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
    words: frozenset[str]
    """Words of the clause, as stems, or as character pairs in Chinese; empty if it names no change."""


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
    claims = list(_claims(text, has_read=has_read))
    if not claims:
        return []
    vocabulary = _vocabulary(specs)
    done = frozenset[str]().union(*map(_words_of_act, acts))
    reported = _words(earlier_reports)
    nothing = not acts and not has_read
    return [
        claim
        for claim in claims
        if reported.isdisjoint(_words(text[claim.start : claim.end]))
        and not _is_confirmed(claim, done, vocabulary, nothing=nothing)
    ]


def admits(text: str) -> bool:
    """Whether `text` plainly says that something was not done, without a word that says the opposite. Apologies and
    questions for a missing value without further text count as such."""
    if is_cheerful(text):
        return False
    return bool(_ADMISSION.search(text) or _APOLOGY.search(text)) or _only_asks(text)


def is_cheerful(text: str) -> bool:
    """Whether `text` contains a word of success."""
    return bool(_CHEER.search(text))


def _only_asks(text: str) -> bool:
    """Whether `text` consists of questions, none of which is for further wishes."""
    sentences = [found[0].strip() for found in _SENTENCE.finditer(text) if found[0].strip()]
    return bool(sentences) and all(one.endswith(("?", "？")) for one in sentences) and not _MORE.search(text)


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
    if not claim.words:
        return not nothing
    if not done:
        return False
    if not _is_chinese(done) and _is_chinese(claim.words):
        return True  # the functions' words are not in the chat's language: no comparison is possible
    # Another effect happened, which the claim may describe unless it names another function.
    named = claim.words & (vocabulary | done)
    return not named or not named.isdisjoint(done)


def _is_chinese(words: frozenset[str]) -> bool:
    return any(is_unspaced(word) for word in words)


def _claims(text: str, *, has_read: bool) -> Iterator[Claim]:
    unquoted = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    for found in _SENTENCE.finditer(unquoted):
        sentence = found[0][:_LONGEST]
        if not sentence.strip() or sentence.rstrip().endswith(("?", "？")):
            continue
        begin = found.start() + len(sentence) - len(sentence.lstrip())
        languages = (
            (CHINESE,)
            if _CHINESE_LETTER.search(sentence)
            else (ENGLISH, GERMAN)
            if _GERMAN.search(sentence)
            else (ENGLISH,)
        )
        for forms in languages:
            for words in _claimed(sentence, forms, has_read=has_read or bool(_SOURCED.search(sentence))):
                yield Claim(begin, found.end(), words)


def _claimed(sentence: str, forms: Forms, *, has_read: bool) -> Iterator[frozenset[str]]:
    """Words of the sentence's clauses that claim a change."""
    subject, is_start = "", True
    for clause in _CLAUSE_END.split(sentence):
        is_first, is_start = is_start, is_start and len(clause.split()) <= _OPENING_WORDS
        if forms.no_claim.search(clause):
            if (
                forms is not CHINESE
                and clause is not sentence
                and re.match(r"\W*(?:if|once|when|wenn|falls)\b", clause, re.I)
            ):
                return
            continue
        if forms.done.search(clause):
            yield frozenset()
            continue
        reported = () if has_read else forms.reported + (forms.short if is_first else ())
        found = _change(clause, forms.own + reported)
        if found is None and subject:
            found = _change(f"{subject} {clause.strip()}", forms.own)
        if found is not None:
            yield found
        begun = _SUBJECTS.search(clause)
        subject = (begun[1] or begun[2]) if begun else subject


def _change(clause: str, patterns: tuple[re.Pattern[str], ...]) -> frozenset[str] | None:
    """Words of a clause that claims a change; None for other clauses."""
    for form in patterns:
        match = form.search(clause)
        if match is not None:
            words = _words(_NUMBERED.sub(" ", clause))
            return None if words & WRITING else words | _words(match["verb"] or "")
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


def true_words(text: str, turn: Turn, claims: Sequence[Claim], acts: Sequence[Act], *, is_reported: bool) -> str:
    """`text` with `claims` replaced by a true sentence, or removed if the bot's own report follows (`is_reported`).
    `acts`: the effects of this turn."""
    if not claims:
        return text
    _log.warning("claim_corrected", turn=turn.input.id, claims=len(claims), effects=turn.memory.effects)
    key = "claims.unconfirmed" if turn.memory.effects or acts else "claims.nothing_done"
    return corrected(text, claims, "" if is_reported else turn.input.profile().texts.say(key))


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
    """Successful effects of nested runs, except runs that only cleaned up."""
    found: list[Act] = []
    for key, run in turn.memory.nested.items():
        spec = turn.input.functions.find(run.function)
        if spec is not None and run.result is not None and run.result.ok and key not in turn.memory.ending:
            found.append(Act(spec, {}, run.result))
    return found
