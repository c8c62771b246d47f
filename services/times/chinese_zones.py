"""Zones by their Chinese names: 北京时间, 美东时间, UTC+8, 东八区."""

from __future__ import annotations

from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from services.lazy_patterns import lazy_pattern
from services.times.chinese_letters import NUMBER, number

_PLACES = {
    "Asia/Shanghai": "北京 中国 上海 国内 深圳 广州 大陆",
    "Asia/Hong_Kong": "香港",
    "Asia/Macau": "澳门",
    "Asia/Taipei": "台北 台湾",
    "Asia/Tokyo": "东京 日本 大阪",
    "Asia/Seoul": "首尔 汉城 韩国",
    "Asia/Singapore": "新加坡 狮城",
    "Asia/Kuala_Lumpur": "吉隆坡 马来西亚",
    "Asia/Bangkok": "曼谷 泰国",
    "Asia/Ho_Chi_Minh": "胡志明市 河内 越南",
    "Asia/Jakarta": "雅加达",
    "Asia/Manila": "马尼拉 菲律宾",
    "Asia/Kolkata": "印度 孟买 新德里 德里 班加罗尔",
    "Asia/Dubai": "迪拜 阿联酋",
    "Europe/Moscow": "莫斯科",
    "Europe/Istanbul": "伊斯坦布尔 土耳其",
    "Europe/London": "伦敦 英国",
    "Europe/Dublin": "都柏林 爱尔兰",
    "Europe/Paris": "巴黎 法国",
    "Europe/Berlin": "柏林 德国 慕尼黑 法兰克福 欧洲中部 中欧",
    "Europe/Madrid": "马德里 西班牙",
    "Europe/Rome": "罗马 意大利",
    "Europe/Amsterdam": "阿姆斯特丹 荷兰",
    "Europe/Zurich": "苏黎世 瑞士",
    "Europe/Athens": "雅典 东欧",
    "America/New_York": "美东 美国东部 东部 纽约 华盛顿 波士顿 多伦多",
    "America/Chicago": "美中 美国中部 芝加哥",
    "America/Denver": "美国山地 山地 丹佛",
    "America/Los_Angeles": "美西 美国西部 太平洋 洛杉矶 旧金山 西雅图 加州 硅谷 温哥华",
    "America/Sao_Paulo": "圣保罗 巴西",
    "Australia/Sydney": "悉尼 雪梨 墨尔本 澳洲东部 澳大利亚东部",
    "Australia/Perth": "珀斯",
    "Pacific/Auckland": "奥克兰 新西兰 纽西兰",
    "UTC": "格林尼治 格林威治 格林尼治标准 格林威治标准 世界 世界标准 协调世界 国际标准",
}
_ZONE_OF = {name: zone for zone, names in _PLACES.items() for name in names.split()}
_ABBREVIATIONS = {
    "utc": "UTC",
    "gmt": "UTC",
    "est": "America/New_York",
    "edt": "America/New_York",
    "pst": "America/Los_Angeles",
    "pdt": "America/Los_Angeles",
    "jst": "Asia/Tokyo",
    "kst": "Asia/Seoul",
    "hkt": "Asia/Hong_Kong",
    "sgt": "Asia/Singapore",
    "cet": "Europe/Berlin",
    "bst": "Europe/London",
}
_NAMED = lazy_pattern(
    rf"(?P<place>{'|'.join(sorted(_ZONE_OF, key=len, reverse=True))})"
    r"(?:当地)?(?:标准|夏令)?(?:时间|时(?![装尚刻代候]))的?"
    rf"|(?:utc|gmt)\s*(?P<sign>[+-])\s*(?P<hours>\d{{1,2}})(?::?(?P<minutes>[0-5]\d))?(?!\d)"
    rf"|(?P<side>[东西])(?P<count>{NUMBER})区(?:时间)?"
    rf"|(?P<short>{'|'.join(_ABBREVIATIONS)})(?![a-z+-])(?:\s*时间)?"
)


def zone_at(text: str, at: int) -> tuple[tzinfo, int] | None:
    """The zone named at `at` of a text in one form, and where the name ends."""
    match = _NAMED.match(text, at)
    if match is None:
        return None
    if match["sign"]:
        minutes = int(match["hours"]) * 60 + int(match["minutes"] or 0)
        return _fixed(-minutes if match["sign"] == "-" else minutes, match.end())
    if match["side"]:
        hours = number(match["count"]) or 0
        return _fixed(int(hours) * (60 if match["side"] == "东" else -60), match.end())
    name = _ZONE_OF[match["place"]] if match["place"] else _ABBREVIATIONS[match["short"]]
    try:
        return ZoneInfo(name), match.end()
    except (ZoneInfoNotFoundError, OSError):
        return None


def _fixed(minutes: int, end: int) -> tuple[tzinfo, int] | None:
    return (timezone(timedelta(minutes=minutes)), end) if abs(minutes) <= 14 * 60 else None


def zone_letters() -> str:
    """The letters that names of zones begin with."""
    return "".join(sorted({name[0] for name in (*_ZONE_OF, *_ABBREVIATIONS)})) + "东西"
