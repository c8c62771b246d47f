"""Every sentence the bot says: `config/texts/*.yaml`, one file a language, the same keys and placeholders in all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from config.texts_reading import read_texts

FOLDER = Path(__file__).parent / "texts"
FALLBACK = "en"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class MissingText(LookupError):
    """A sentence was asked for that no file of texts has."""


class Phrases:
    """The sentences of one language."""

    def __init__(self, language: str, templates: Mapping[str, str]) -> None:
        self.language = language
        self._templates = dict(templates)
        self._words: dict[str, tuple[str, ...]] = {}

    def say(self, key: str, /, **values: object) -> str:
        """The sentence `key` with each `{name}` replaced by that value, literally: values are never templates.
        Raises MissingText, and KeyError for a placeholder without a value."""
        template = self._templates.get(key)
        if template is None:
            raise MissingText(f"no text {key!r} in config/texts/{self.language}.yaml")
        if "{" not in template:
            return template
        return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)

    def resolve(self, text: str, /, **values: object) -> str:
        """`text` itself, or the sentence it names in the form `@key`; placeholders are filled in both."""
        if text.startswith("@"):
            return self.say(text[1:], **values)
        return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), text)

    def words(self, key: str) -> tuple[str, ...]:
        """A sentence that is a list of words separated by commas: what people may say for yes, for example."""
        if key not in self._words:
            self._words[key] = tuple(word.strip() for word in re.split("[,，]", self.say(key)))
        return self._words[key]

    def has(self, key: str) -> bool:
        """Whether the sentence exists."""
        return key in self._templates

    @property
    def templates(self) -> Mapping[str, str]:
        """All sentences, for checks."""
        return self._templates


class Texts:
    """The sentences of all languages; a language is read when it is first asked for."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._languages: dict[str, Phrases] = {}

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages there are files for."""
        return tuple(sorted(file.stem for file in self._folder.glob("*.yaml")))

    def of(self, language: str) -> Phrases:
        """The sentences of `language` (`zh-TW` finds `zh`), or English where there is no file for it."""
        known = self._languages.get(language)
        if known is None:
            stem = language.lower().replace("_", "-").split("-")[0]
            file = self._folder / f"{stem}.yaml"
            if not file.is_file():
                stem, file = FALLBACK, self._folder / f"{FALLBACK}.yaml"
            known = self._languages.get(stem) or Phrases(stem, read_texts(file.read_text(encoding="utf-8")))
            self._languages[stem] = self._languages[language] = known
        return known


def placeholders(template: str) -> frozenset[str]:
    """The names in `template` that `say` needs values for."""
    return frozenset(_PLACEHOLDER.findall(template))
