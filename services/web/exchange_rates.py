"""Euro reference rates of the European Central Bank, and names of currencies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import structlog

from services.clock import Clock
from services.refs import ErrorCode
from services.web.http import WebAnswer, WebClient, WebError

RATES_URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
SOURCE = "ECB"
_log = structlog.get_logger("exchange_rates")
_RETRY_SECONDS = 600.0
"""Pause after a failed request while older rates are used."""
_DATE = re.compile(r"""\btime=["'](\d{4}-\d{2}-\d{2})["']""")
_RATE = re.compile(r"""\bcurrency=["']([A-Z]{3})["']\s+rate=["'](\d{1,12}(?:\.\d{1,12})?)["']""")
_CODE = re.compile(r"[A-Za-z]{3}")
# Code and names of each currency; the names may also be names of units ("pounds").
_NAMES = """
EUR euro euros € 欧元; USD dollar dollars us-dollar us-dollars $ us$ 美元 美金; GBP pound pounds sterling £ 英镑
CNY yuan rmb renminbi 元 人民币 块 块钱; JPY yen ¥ 日元; CHF franc francs swiss-franc swiss-francs 瑞士法郎 瑞郎
HKD hk$ hong-kong-dollar hong-kong-dollars 港币 港元; KRW won ₩ 韩元; INR rupee rupees ₹ 卢比; THB baht 泰铢
CAD canadian-dollar canadian-dollars c$ 加元; AUD australian-dollar australian-dollars a$ 澳元; NZD 新西兰元 纽元
SGD singapore-dollar singapore-dollars s$ 新加坡元 新币; SEK swedish-krona 瑞典克朗; PLN zloty zł 兹罗提
NOK norwegian-krone 挪威克朗; DKK danish-krone 丹麦克朗; CZK koruna 捷克克朗; ILS shekel ₪ 谢克尔
HUF forint 福林; TRY lira 土耳其里拉; BRL reais r$ 雷亚尔; MXN mexican-peso 墨西哥比索; ZAR rand 兰特
MYR ringgit 林吉特 马币; IDR rupiah 印尼盾; PHP philippine-peso 菲律宾比索; RUB ruble rubles 卢布
"""
_CODES = {
    name: one.split()[0] for line in _NAMES.strip().splitlines() for one in line.split(";") for name in one.split()[1:]
}


def currency_code(name: str) -> str:
    """ISO code of a currency's name or code, such as `USD` for `dollars`; empty for other words. Any word of three
    Latin letters in capitals is a code, whether or not there is a rate."""
    written = name.strip().rstrip(".")
    if written.upper() in _CODES.values() or (_CODE.fullmatch(written) and written.isupper()):
        return written.upper()
    return _CODES.get("-".join(written.casefold().split()), "")


@dataclass(frozen=True, slots=True)
class Rates:
    """Reference rates of one day."""

    day: str
    """ISO date."""
    per_euro: Mapping[str, Fraction]
    """Exact units of each currency for one euro, with EUR."""

    def convert(self, value: Fraction, source: str, target: str) -> Fraction:
        """`value` of the currency `source` in `target`, exactly. Raises KeyError for a currency without a rate."""
        return value * self.per_euro[target] / self.per_euro[source]


class ExchangeRates:
    """The rates, requested at most once per day (UTC). If that fails, older rates are used."""

    def __init__(self, http: WebClient, clock: Clock, *, url: str = RATES_URL) -> None:
        self._http = http
        self._clock = clock
        self._url = url
        self._lock = asyncio.Lock()
        self._rates: Rates | None = None
        self._requested_on: date | None = None
        self._retry_at = 0.0

    async def latest(self) -> Rates:
        """The latest known rates. Raises WebError if there are none."""
        async with self._lock:
            today = self._clock.now().date()
            if self._rates is not None and (self._requested_on == today or self._clock.monotonic() < self._retry_at):
                return self._rates
            try:
                self._rates = _parsed(await self._http.get(self._url))
                self._requested_on = today
            except WebError as error:
                _log.warning("rates_failed", problem=str(error))
                if self._rates is None:
                    raise
                self._retry_at = self._clock.monotonic() + _RETRY_SECONDS
            return self._rates


def _parsed(answer: WebAnswer) -> Rates:
    text = answer.body.decode("utf-8", "replace")
    day = _DATE.search(text)
    rates = {code: Fraction(rate) for code, rate in _RATE.findall(text) if Fraction(rate)}
    if day is None or not rates:
        raise WebError(ErrorCode.FAILED, "the central bank answers in a shape that is not known")
    return Rates(day[1], {**rates, "EUR": Fraction(1)})
