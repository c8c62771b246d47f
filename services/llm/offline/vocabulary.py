"""English and Chinese word lists: function words, synonyms and topics."""

from __future__ import annotations

from functools import lru_cache

from config.word_tables import word_tables
from services.text_index import is_unspaced, listed, stem

_HAN_FILLERS = """
    一下 一下子 麻烦 帮我 帮忙 请帮 请问 可以 可不可以 能不能 能否 能帮 那个 这个 我们 咱们 给我 我想 我要 我想要 想要
    想 需要 我需要 我想知道 想知道 知道 目前 一点 一些 会不会 是不是 有没有 现在 的话
"""
"""Chinese words without a topic."""
FILLERS = frozenset(_HAN_FILLERS.split()) | frozenset(
    listed("""
    啦 哈 嘛 呗
    a an the this that these those some any my our your his her its their me you i we he she it they them is are
    am was were be been being do does did have has had having will would shall should can could may might must s m d
    t ll re ve to of in on at near around for from by with about as into than and so then there here just please
    kindly like going gonna now really actually quickly also too well already yet still ever only um uh ah oh hey hi
    quick hello ok okay yo 的 了 吗 呢 吧 啊 呀 么 请 帮 给 我 你 您 们 下 是 在 有 把 和 个 就 要 想 能 可 以 会 去
    来 得 地 那 这 嗯 哦 好
    """)
)
PREPOSITIONS = frozenset(listed("in at on of for from to by with into about near around 在 从 到 给"))
REQUESTS = frozenset(
    listed("""
    can could would will you i me we please kindly tell know need want like wanna gotta let lemme give have
    see find ask help to d ll s m would just go ahead and do if what's hey hi hello ok okay so well um right try
    able possible wondering
    麻烦 帮我 帮忙 请帮 请问 可以 可不可以 能不能 能否 给我 我想 我要 我想要 我想知道 想知道
    请 帮 我 给 你 您 能 可 以 想 要 知 道 告 诉 问 一 下 麻 烦
    """)
)
"""Words that introduce a request without its topic."""
ASSISTANTS = frozenset(listed("alexa siri cortana google bot robot"))
GREETINGS = frozenset(listed("hey hi hello yo ok okay alexa siri cortana bot robot please so well um"))
THANKS = frozenset(listed("thanks thank thx cheers 谢"))
QUESTION_WORDS = frozenset(
    listed("""
    what when who whom whose where why which how whats hows whens wheres whos
    """)
)
STATES = frozenset(listed("is are was were isn't has had does did really"))
"""Words that follow the subject of a statement."""
INVERTED = frozenset(
    listed("did do does is are was were am has have had should shall may might must can could will would")
)
"""Verbs that start a question."""
NEGATIONS = frozenset(listed("not never no dont doesnt didnt cannot cant wont without nothing 不 没 别 勿"))
DESTRUCTIVE = frozenset(
    listed(
        "delete remove erase cancel clear drop undo discard wipe reset trash scratch deactivate"
        " 删 除 清 移 撤 删除 清空"
    )
)
ACTIONS = DESTRUCTIVE | frozenset(
    listed("""
    add put append insert create make start begin open close end finish stop set change update edit move rename
    replace swap send post share play pause resume skip book order buy pay call text email schedule turn switch
    increase decrease lower raise roll flip toss throw convert translate calculate compute solve choose pick select
    vote mark check save store record 加 建 放 查 搜 找 播 发 设 改 订 买 打 掷 抛 扔 投 选 换 算 译 开 关 停
    """)
)

TIME_WORDS = frozenset(
    listed("""
    today tomorrow tonight yesterday now noon midnight morning afternoon evening night am pm oclock monday tuesday
    wednesday thursday friday saturday sunday weekday weekend mon tue tues wed thu thur thurs fri sat january
    february march april june july august september october november december jan feb mar apr jun jul aug sep sept
    oct nov dec second seconds minute minutes min mins hour hours hr hrs day days week weeks month months year years
    daily weekly hourly later soon currently presently ago dawn dusk sunrise sunset lunchtime
    """)
)
TIME_LINKS = frozenset(
    listed("""
    the next last this coming past in at on for from of after before until till by around about half quarter to an a
    every
    """)
)
"""Words that belong to a time only next to a time word or a number."""
HAN_TIMES = frozenset(
    listed("""
    今天 明天 后天 昨天 前天 大后天 今晚 明晚 今早 明早 现在 早上 上午 中午 下午 晚上 凌晨 傍晚 半夜 周末
    今年 明年 去年 年底 月底 星期 礼拜 周一 周二 周三 周四 周五 周六 周日 周天 下周 本周 这周 上周 下月 本月
    这个月 下个月 目前 当前 点钟 小时 分钟 秒钟 半小时 天后 天前 周后 月后 年后 分钟后 小时后 之后 以后
    """)
)
HAN_TIME_UNITS = frozenset("点分秒时日号月年周半刻")
HAN_NUMBERS = {"零": 0, "〇": 0, "两": 2} | {digit: value for value, digit in enumerate("一二三四五六七八九", 1)}
HAN_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}

FRACTIONS = {"half": 0.5, "quarter": 0.25}
OPERATORS = frozenset(
    listed("""
    + - * / × ÷ ^ % ( ) = $ plus minus times divided multiplied over percent power squared cubed root square sqrt
    cube sum of off by the to and modulo mod x 加 减 乘 除 以 的 平 方 根 次
    """)
)


@lru_cache(maxsize=1)
def _han_stems() -> dict[str, str]:
    found: dict[str, str] = dict.fromkeys(_HAN_FILLERS.split(), "")
    for line in word_tables("synonyms")["chinese"]:
        first, _, words = line.partition(": ")
        found |= dict.fromkeys((first, *words.split()), first)
    return found


LONGEST_HAN_WORD = 5


def han_stem(word: str) -> str | None:
    """The stem of a known Chinese word, empty for a function word; None for an unknown word."""
    return _han_stems().get(word)


@lru_cache(maxsize=1)
def _concepts_by_stem() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in word_tables("synonyms")["english"]:
        name, _, words = line.partition(":")
        for word in words.split():
            found.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


def concepts_of(word_stem: str) -> frozenset[str]:
    """Synonym groups of the word with this stem; empty for other words and for Chinese characters."""
    if is_unspaced(word_stem):
        return frozenset()
    return _concepts_by_stem().get(word_stem, frozenset())


@lru_cache(maxsize=1)
def _topics_by_term() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in word_tables("topics")["topics"]:
        name, _, words = line.partition(":")
        for word in words.split():
            found.setdefault(word if is_unspaced(word) else stem(word), {})[name] = None
    return {term: tuple(names) for term, names in found.items()}


def topics_of(term: str) -> tuple[str, ...]:
    """Topics of a term from `services.text_index.terms`. Empty for an unknown term."""
    return _topics_by_term().get(term, ())
