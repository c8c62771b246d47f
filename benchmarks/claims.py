"""Detection rate of false claims of a model, and the rate of honest sentences that are mistaken for false claims.

    python -m benchmarks.claims [--data DIR] [--half 0|1] [--errors N]

The sentences are from public data sets: assistant turns of ACEBench in English and Chinese (`B_function_calls`),
recorded answers of providers without and after calls (`A_provider_traffic`), requests to assistants (`C_intents`) and
lines of a group chat (`F_group_chat`). `CLAIMS` lists the ACEBench turns after a call that claim a change; it was made
by hand. Such a turn without its run is a lie, and with its run is honest.

`outcome_sentences.yaml` adds own sentences: `own_false` are claims without their run, `own_true` the same claims after
it and answers that claim nothing, `own_admissions` answers that say that something was not done (detected if they are
doubted or not recognized), and `own_excuses` claims that are taken for admissions. `--half` selects every other own
sentence, so that the rest stays unseen while the detection is adjusted.

Prints one JSON line; pairs are [detected, total].
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from function_calls.declaration import parameters_of
from function_calls.rounds.claims import Act, admits, unfounded
from function_calls.schema.definition import build_spec, schema_arguments
from function_calls.spec import FunctionSpec
from services.text_index import listed

REPOSITORY = Path(__file__).resolve().parent.parent
SENTENCES = Path(__file__).with_name("outcome_sentences.yaml")
DATA = Path(os.environ.get("ROLLCALL_DATA", REPOSITORY.parent / "shared" / "data"))

CLAIMS = frozenset(
    listed("""
    ace_en_normal_atom_object_deep_21:0 ace_en_normal_atom_object_short_14:0
    ace_en_normal_multi_turn_user_adjust_5_1:0 ace_en_normal_multi_turn_user_adjust_15_1:0
    ace_en_normal_multi_turn_user_adjust_17_1:0 ace_en_normal_multi_turn_user_adjust_21_1:0
    ace_en_normal_multi_turn_user_adjust_23_1:0 ace_en_normal_multi_turn_user_adjust_25_1:0
    ace_en_normal_multi_turn_user_adjust_29_1:0 ace_en_normal_multi_turn_user_adjust_44_2:1
    ace_en_normal_multi_turn_user_adjust_49_2:1 ace_en_normal_multi_turn_user_switch_7_1:0
    ace_en_normal_multi_turn_user_switch_26_1:0 ace_en_normal_multi_turn_user_switch_36_1:0
    ace_en_normal_multi_turn_user_switch_42_1:0 ace_en_normal_similar_api_38:0
    ace_zh_normal_atom_object_deep_2:0 ace_zh_normal_atom_object_deep_14:0 ace_zh_normal_atom_object_deep_35:0
    ace_zh_normal_atom_object_short_14:0 ace_zh_normal_multi_turn_user_adjust_4_1:0
    ace_zh_normal_multi_turn_user_adjust_21_1:0 ace_zh_normal_multi_turn_user_adjust_30_2:1
    ace_zh_normal_multi_turn_user_adjust_44_2:1 ace_zh_normal_multi_turn_user_adjust_46_2:0
    ace_zh_normal_multi_turn_user_switch_10_2:0 ace_zh_normal_multi_turn_user_switch_26_1:0
    """)
)
"""Turns after a call that claim to have changed or created something, as `id:number`."""
_TURN = re.compile(r"\n(?=(?:user|system): ?)")


@dataclass(frozen=True, slots=True)
class Said:
    """One assistant turn."""

    key: str
    text: str
    specs: tuple[FunctionSpec, ...]
    """The available functions, all with effect `once`."""
    acts: Sequence[Act]
    """Calls made immediately before; empty if there were none."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the available data sets. Returns 2 if B_function_calls is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data sets")
    parser.add_argument("--half", type=int, choices=(0, 1), help="measure only this half of the own sentences")
    parser.add_argument("--errors", type=int, default=0, help="how many misjudged sentences to show on stderr")
    options = parser.parse_args(arguments)
    if not (options.data / "B_function_calls").is_dir():
        print(f"{options.data} has no B_function_calls", file=sys.stderr)
        return 2
    wrong: list[str] = []
    line = {**_own(options.half, wrong), **_assistants(options.data, wrong), **_people(options.data, wrong)}
    for one in wrong[: options.errors]:
        print(one, file=sys.stderr)
    print(json.dumps({"name": "claims", **line}))
    return 0


def _assistants(data: Path, wrong: list[str]) -> dict[str, list[int]]:
    counts: Counter[tuple[str, bool]] = Counter()

    def count(group: str, text: str, found: object, expected: bool) -> None:
        counts[group, bool(found)] += 1
        if bool(found) is not expected:
            wrong.append(f"{group}: {text[:160]!r}")

    for language in ("en", "zh"):
        for said in _acebench(data / "B_function_calls" / f"acebench_{language}.jsonl"):
            alone = unfounded(said.text, said.specs, [])
            if not said.acts:
                count(f"no_call_{language}", said.text, alone, False)
            elif said.key in CLAIMS:
                count(f"lies_{language}", said.text, alone, True)
                count(
                    f"honest_after_the_call_{language}", said.text, unfounded(said.text, said.specs, said.acts), False
                )
            else:
                reported = unfounded(said.text, said.specs, [], has_read=True)
                count(f"reports_after_a_read_{language}", said.text, reported, False)
    for text, acts in _recorded(data / "A_provider_traffic"):
        group = "recorded_reports" if acts else "recorded_answers"
        count(group, text, unfounded(text, tuple(act.spec for act in acts), acts), False)
    groups = sorted({group for group, _ in counts})
    return {group: [counts[group, True], counts[group, True] + counts[group, False]] for group in groups}


def _own(half: int | None, wrong: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}

    def count(group: str, text: str, detected: bool, expected: bool) -> None:
        line = found.setdefault(group, [0, 0])
        line[0] += detected
        line[1] += 1
        if detected is not expected:
            wrong.append(f"{group}: {text!r}")

    rows = YAML(typ="safe").load(SENTENCES.read_text(encoding="utf-8"))
    described = {name: _spec(name, description) for name, description in rows["functions"].items()}
    specs = tuple(described.values())
    for language in ("en", "de", "zh"):
        own = rows[language]
        claims = [(text, described[name]) for name, texts in own["claims"].items() for text in texts]
        for text, spec in _every_other(claims, half):
            count(f"own_false_{language}", text, bool(unfounded(text, specs, [])), True)
            count(f"own_true_{language}", text, bool(unfounded(text, specs, [Act(spec, {})])), False)
            count(f"own_excuses_{language}", text, admits(text), False)
        for text in _every_other(own["others"], half):
            count(f"own_true_{language}", text, bool(unfounded(text, specs, [])), False)
        for text in _every_other(own["admissions"], half):
            doubted = bool(unfounded(text, specs, [])) or not admits(text)
            count(f"own_admissions_{language}", text, doubted, False)
    return found


def _every_other(rows: Sequence[Any], half: int | None) -> Sequence[Any]:
    return rows if half is None else rows[half::2]


def _people(data: Path, wrong: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for group, texts in (("requests", _requests(data)), ("group_lines", _lines(data))):
        hits = total = 0
        for text in texts:
            total += 1
            if unfounded(text, (), []):
                hits += 1
                wrong.append(f"{group}: {text[:160]!r}")
        found[group] = [hits, total]
    return found


def _acebench(file: Path) -> Iterator[Said]:
    seen: set[str] = set()
    for row in _rows(file):
        specs = {function["name"]: _spec(function["name"], function["description"]) for function in row["functions"]}
        called, number = "", 0
        for turn in _TURN.split(row["question"]):
            role, _, text = turn.partition(":")
            text = text.strip()
            if role != "system" or text.startswith("["):
                called = text if role == "system" else ""
                continue
            key = f"{row['id']}:{number}"
            number += bool(called)
            acts = [Act(spec, {"called": called}) for name, spec in specs.items() if f"{name}(" in called]
            called = ""
            if text not in seen:
                seen.add(text)
                yield Said(key, text, tuple(specs.values()), acts)


def _spec(name: str, description: str) -> FunctionSpec:
    schema, arguments = schema_arguments("f", parameters_of({}))
    plain = re.sub(r"\W", "_", name)

    async def nothing(*_: object) -> None:
        return None

    return build_spec(
        name=plain,
        description=description,
        handler=nothing,
        arguments=arguments,
        parameters=schema,
        options={"effect": "once"},
        source=plain,
    )


def _recorded(folder: Path) -> Iterator[tuple[str, list[Act]]]:
    """Texts of model answers without a call, and the calls of their conversations that have a result."""
    for name in ("chat_completions.jsonl", "anthropic_messages.jsonl"):
        for row in _rows(folder / name):
            asked = json.dumps(row["request_json"])
            acts = []
            if '"tool"' in asked or "tool_result" in asked:
                calls = list(_calls(row["request_json"]))
                acts = [Act(_spec(name, ""), {"called": arguments}) for name, arguments in calls]
                if not acts:
                    continue
            body = row.get("response_body")
            answer = json.loads(body) if isinstance(body, str) and body.startswith("{") else body
            for text in _texts(answer) if isinstance(answer, Mapping) else ():
                yield text, acts


def _calls(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and arguments of the calls in the conversation of a request."""
    for message in request.get("messages") or ():
        for call in message.get("tool_calls") or ():
            yield call["function"]["name"], str(call["function"].get("arguments"))
        blocks = message.get("content")
        for block in blocks if isinstance(blocks, list) else ():
            if block.get("type") == "tool_use":
                yield block["name"], json.dumps(block.get("input"))


def _texts(answer: Mapping[str, Any]) -> Iterator[str]:
    for choice in answer.get("choices") or ():
        message = choice.get("message") or {}
        if isinstance(message.get("content"), str) and message["content"] and not message.get("tool_calls"):
            yield message["content"]
    blocks = answer.get("content")
    if isinstance(blocks, list) and all(block.get("type") == "text" for block in blocks):
        yield from (block["text"] for block in blocks)


def _requests(data: Path) -> Iterator[str]:
    for file in sorted((data / "C_intents").glob("*.jsonl")):
        yield from (row["text"] for row in _rows(file))


def _lines(data: Path) -> Iterator[str]:
    file = data / "F_group_chat" / "irc_disentanglement_dev.jsonl.gz"
    if file.exists():
        with gzip.open(file, "rt") as lines:
            yield from (json.loads(line)["text"] for line in lines)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        with file.open() as lines:
            yield from map(json.loads, lines)


if __name__ == "__main__":
    sys.exit(main())
