"""What a chat takes to hand by its name: functions on request, and groups of functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from function_calls.groups import Takeable, ToolGroup
from function_calls.spec import Activation, FunctionSpec, OfferedTo

_NOTHING: frozenset[str] = frozenset()


class OnRequest:
    """All that the functions and groups of one bot give to be taken to hand. Frozen with them."""

    def __init__(self, specs: Sequence[FunctionSpec], groups: Iterable[ToolGroup]) -> None:
        self._specs = specs
        by_request = [spec for spec in specs if spec.activation is Activation.ON_REQUEST]
        found = [self._of_group(group) for group in groups]
        named = {one.name for one in found}
        # A group that is only spoken of by its functions is one all the same.
        implied = dict.fromkeys(name for spec in by_request for name in sorted(spec.groups) if name not in named)
        found += [self._of_group(ToolGroup(name, "", ())) for name in implied]
        grouped = {one.name for one in found}
        found += [
            Takeable(spec.name, spec.description, (spec.name,), is_group=False)
            for spec in by_request
            if spec.name not in grouped and OfferedTo.MODEL in spec.offered_to
        ]
        self.takeable: Mapping[str, Takeable] = MappingProxyType({one.name: one for one in found})
        """By their names: groups first, then functions."""
        self._by_word = {one.name.casefold(): one for one in reversed(found)}
        ways: dict[str, set[str]] = {spec.name: {spec.name} for spec in by_request}
        for one in found:
            for name in one.functions:
                ways.get(name, set()).add(one.name)
        self._ways = {name: frozenset(by) for name, by in ways.items()}

    def find(self, word: str) -> Takeable | None:
        """What is called so, in any case."""
        return self.takeable.get(word) or self._by_word.get(word.casefold())

    def is_at_hand(self, spec: FunctionSpec, at_hand: Collection[str]) -> bool:
        """Whether a model is offered `spec` where these names are at hand."""
        return spec.activation is Activation.ALWAYS or not self._ways.get(spec.name, _NOTHING).isdisjoint(at_hand)

    def prompts(self, at_hand: Collection[str]) -> str:
        """What a model is told of the groups that are at hand; empty where they have nothing to say."""
        if not at_hand:
            return ""
        told = (one for name, one in self.takeable.items() if name in at_hand and one.system_prompt.strip())
        return "\n\n".join(f"### {one.name}\n{one.system_prompt.strip()}" for one in told)

    def _of_group(self, group: ToolGroup) -> Takeable:
        listed = frozenset(group.functions)
        members = tuple(spec.name for spec in self._specs if spec.name in listed or group.name in spec.groups)
        return Takeable(group.name, group.description, members, group.system_prompt)
