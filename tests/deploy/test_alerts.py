"""The alert rules are valid for Prometheus and use only metrics that a daemon has."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from bot.platforms.base import LinkState
from bot.testing import TestPlatform, a_group
from tests.conftest import REPOSITORY
from tests.contracts.engines import a_conversation

ALERTS = REPOSITORY / "deploy" / "alerts.yaml"
UNIT_TEST = """\
rule_files: [{alerts}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'rollcall_oldest_waiting_seconds{{instance="a"}}', values: '0x10 300x20'}}
      - {{series: 'rollcall_store_usable{{instance="a"}}', values: '1x10 0x20'}}
      - {{series: 'rollcall_cluster_account_held{{job="r",instance="a",platform="irc:main"}}', values: '1x10 0x20'}}
      - {{series: 'rollcall_cluster_account_held{{job="r",instance="b",platform="irc:main"}}', values: '0x30'}}
      - {{series: 'rollcall_cluster_account_held{{job="r",instance="a",platform="web:main"}}', values: '1x10 0x20'}}
      - {{series: 'rollcall_cluster_account_held{{job="r",instance="b",platform="web:main"}}', values: '0x10 1x20'}}
      - {{series: 'rollcall_cluster_heartbeat_age_seconds{{instance="a"}}', values: '3x10 60x20'}}
      - {{series: 'rollcall_cluster_turns_waiting{{instance="a"}}', values: '0x10 7x20'}}
      - {{series: 'rollcall_turns_total{{instance="a",reason="model_failed"}}', values: '0+5x60'}}
      - {{series: 'rollcall_turns_total{{instance="a",reason="chat"}}', values: '0+5x60'}}
      - {{series: 'rollcall_model_cost_total{{instance="a",model="main"}}', values: '0+0.01x60'}}
    alert_rule_test:
      - {{eval_time: 5m, alertname: RollcallTurnsWaitLong}}
      - {{eval_time: 5m, alertname: RollcallStoreUnusable}}
      - eval_time: 20m
        alertname: RollcallTurnsWaitLong
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a}}
            exp_annotations: {{summary: The oldest message has waited for 5m 0s}}
      - eval_time: 20m
        alertname: RollcallStoreUnusable
        exp_alerts:
          - exp_labels: {{severity: critical, instance: a}}
            exp_annotations: {{summary: The database cannot be written; no message is accepted}}
      - {{eval_time: 5m, alertname: RollcallAccountNotHeld}}
      - {{eval_time: 5m, alertname: RollcallHeartbeatLate}}
      - {{eval_time: 15m, alertname: RollcallWorkersBusy}}
      - eval_time: 20m
        alertname: RollcallAccountNotHeld
        exp_alerts:
          - exp_labels: {{severity: critical, job: r, platform: "irc:main"}}
            exp_annotations: {{summary: "No gateway holds irc:main"}}
      - eval_time: 20m
        alertname: RollcallHeartbeatLate
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a}}
            exp_annotations: {{summary: The last heartbeat was 1m 0s ago; other processes take over the work}}
      - eval_time: 25m
        alertname: RollcallWorkersBusy
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a}}
            exp_annotations: {{summary: 7 turns wait for a free worker}}
      - eval_time: 50m
        alertname: RollcallTurnsFail
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a}}
            exp_annotations: {{summary: 50% of the turns end with an error}}
      - {{eval_time: 50m, alertname: RollcallSpendsMuch}}
"""
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


class LinkedPlatform(TestPlatform):
    """A network with a connection."""

    async def until_reachable(self, outgoing: object, said_at_ms: int) -> None:
        return None

    def link(self) -> LinkState:
        return LinkState(True, "connected", 0)


def promtool(*command: object) -> tuple[int, str]:
    ended = subprocess.run(["promtool", *map(str, command)], capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def rules() -> list[dict[str, Any]]:
    (group,) = YAML(typ="safe").load(ALERTS)["groups"]
    return list(group["rules"])


@needs_promtool
def test_prometheus_accepts_the_rules() -> None:
    status, said = promtool("check", "rules", ALERTS)
    assert (status, f"SUCCESS: {len(rules())} rules found" in said) == (0, True), said


@needs_promtool
def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "test.yaml").write_text(UNIT_TEST.format(alerts=ALERTS), encoding="utf-8")
    status, said = promtool("test", "rules", tmp_path / "test.yaml")
    assert status == 0, said


@pytest.fixture
async def text(tmp_path: Path, new_postgres_database: str) -> str:
    """The metrics of a daemon with a network, and of the processes of a cluster."""
    async with a_group(platform=LinkedPlatform()) as group:
        group.daemon.ticker()
        text = group.daemon.metrics.render().decode()
    async with a_conversation("cluster", tmp_path, new_postgres_database) as chat:
        return text + "".join(daemon.metrics.render().decode() for daemon in chat.daemons)


async def test_alerts_use_metrics_that_a_daemon_has(text: str) -> None:
    # Histograms without values have no samples.
    known = set(re.findall(r"^# TYPE (\S+) ", text, re.M)) | {"rollcall_turn_seconds_bucket"}
    used = {name for rule in rules() for name in re.findall(r"\brollcall_\w+", rule["expr"])}
    assert used - known == set()


async def test_the_guide_names_each_metric(text: str) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (REPOSITORY / "docs").glob("*.md"))
    assert {name for name in re.findall(r"^# TYPE (\S+) ", text, re.M) if f"`{name}" not in pages} == set()
