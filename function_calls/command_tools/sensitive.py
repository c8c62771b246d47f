"""What of a tool holds words that stay out of logs, however many variables lead to them."""

from __future__ import annotations

from collections.abc import Iterable

from function_calls.command_tools.words import Template


class Sensitive:
    """The sensitive parameters of a tool, and the variables that were made of them."""

    def __init__(self, parameters: Iterable[str]) -> None:
        self._holds: dict[str, tuple[str, ...]] = {name: (name,) for name in parameters}

    def within(self, template: Template) -> tuple[str, ...]:
        """The sensitive parameters whose values stand in `template`."""
        return tuple(dict.fromkeys(name for one in template.variables for name in self._holds.get(one.root, ())))

    def made(self, variable: str, template: Template) -> None:
        """From now on `variable` stands for `template`."""
        self._holds[variable] = self.within(template)
