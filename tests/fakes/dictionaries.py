"""Responses in the formats of the English Wiktionary and the European Central Bank."""

from __future__ import annotations

from typing import Any

DICTIONARY_PATH = "/api/rest_v1/page/definition"
RATES_PATH = "/stats/eurofxref/eurofxref-daily.xml"


def english_answer() -> dict[str, Any]:
    """An English word with two parts of speech, which is also a French one."""
    noun = [
        {"definition": "A <i>challenge</i>, trial.", "parsedExamples": []},
        {
            "definition": "A cupel for melting metals.",
            "parsedExamples": [{"example": "The  <b>test</b>\nwas cracked."}],
            "examples": ["The <b>test</b> was cracked."],
        },
    ]
    return {
        "fr": [{"partOfSpeech": "Noun", "language": "French", "definitions": [{"definition": "test"}]}],
        "en": [
            {"partOfSpeech": "Noun", "language": "English", "definitions": noun},
            {"partOfSpeech": "Verb", "language": "English", "definitions": [{"definition": "To challenge."}]},
        ],
    }


def chinese_answer() -> dict[str, Any]:
    """A word in Chinese characters, with markup; Japanese comes first in the answer."""
    return {
        "ja": [
            {
                "partOfSpeech": "Noun",
                "language": "Japanese",
                "definitions": [{"definition": '<a rel="mw:WikiLink" href="/wiki/fate">fate</a>'}],
            }
        ],
        "zh": [
            {
                "partOfSpeech": "Noun",
                "language": "Chinese",
                "definitions": [
                    {"definition": ""},
                    {
                        "definition": 'predestined <a href="/wiki/affinity">affinity</a><style>.x{}</style>',
                        "parsedExamples": [{"example": "<b>缘分</b>天注定"}],
                        "examples": ["<b>缘分</b>天注定"],
                    },
                ],
            }
        ],
    }


def rates_answer(day: str = "2026-01-02") -> bytes:
    """Reference rates of one day."""
    rates = {"USD": "1.0705", "JPY": "171.94", "GBP": "0.84638", "CNY": "7.7748", "IDR": "17487.21"}
    lines = "\n".join(f"\t\t\t<Cube currency='{code}' rate='{rate}'/>" for code, rate in rates.items())
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" \
xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
\t<gesmes:subject>Reference rates</gesmes:subject>
\t<gesmes:Sender>
\t\t<gesmes:name>European Central Bank</gesmes:name>
\t</gesmes:Sender>
\t<Cube>
\t\t<Cube time='{day}'>
{lines}
\t\t</Cube>
\t</Cube>
</gesmes:Envelope>""".encode()
