"""Words that people say for colours, languages, days and months, and that scripts say for what they ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COLORS: Mapping[str, str] = {
    "black": "#000000", "white": "#ffffff", "red": "#ff0000", "green": "#008000", "blue": "#0000ff",
    "yellow": "#ffff00", "orange": "#ffa500", "purple": "#800080", "pink": "#ffc0cb", "brown": "#a52a2a",
    "grey": "#808080", "gray": "#808080", "cyan": "#00ffff", "magenta": "#ff00ff", "gold": "#ffd700",
    "silver": "#c0c0c0", "navy": "#000080", "teal": "#008080", "lime": "#00ff00", "violet": "#ee82ee",
    "黑": "#000000", "白": "#ffffff", "红": "#ff0000", "绿": "#008000", "蓝": "#0000ff", "黄": "#ffff00",
    "橙": "#ffa500", "紫": "#800080", "粉": "#ffc0cb", "棕": "#a52a2a", "灰": "#808080", "金": "#ffd700",
    "银": "#c0c0c0", "青": "#00ffff",
}  # fmt: skip
"""As web pages write them."""
LANGUAGES: Mapping[str, str] = {
    "english": "en", "chinese": "zh", "mandarin": "zh", "spanish": "es", "portuguese": "pt", "french": "fr",
    "german": "de", "italian": "it", "dutch": "nl", "norwegian": "no", "swedish": "sv", "danish": "da",
    "finnish": "fi", "polish": "pl", "russian": "ru", "ukrainian": "uk", "turkish": "tr", "arabic": "ar",
    "hebrew": "he", "hindi": "hi", "japanese": "ja", "korean": "ko", "vietnamese": "vi", "thai": "th",
    "indonesian": "id", "greek": "el", "czech": "cs", "hungarian": "hu", "romanian": "ro",
    "英语": "en", "英文": "en", "中文": "zh", "汉语": "zh", "普通话": "zh", "日语": "ja", "日文": "ja", "韩语": "ko",
    "法语": "fr", "德语": "de", "西班牙语": "es", "俄语": "ru", "意大利语": "it", "葡萄牙语": "pt", "阿拉伯语": "ar",
}  # fmt: skip
"""By their usual names, as tags."""
WEEKDAYS: Sequence[str] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Sequence[str] = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
ALIASES: Mapping[str, str] = {
    "string": "text", "any": "text", "float": "number", "decimal": "number", "int": "integer", "yesno": "boolean",
    "bool": "boolean", "time": "hour", "day": "date", "currency": "money", "phone": "mobile", "tel": "mobile",
    "postcode": "zipcode", "zip": "zipcode", "link": "url", "website": "url", "guid": "uuid", "colour": "color",
    "mail": "email", "document": "file", "photo": "image", "picture": "image", "user": "username",
}  # fmt: skip
"""Other words for some of the kinds of answers."""
