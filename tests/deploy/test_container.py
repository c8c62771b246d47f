"""The image and the compose file: parsed, with existing paths, and with the least rights."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from config.loader import check_settings
from tests.conftest import REPOSITORY

DOCKERFILE = REPOSITORY / "deploy" / "Dockerfile"
Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """Instructions of each stage with their arguments; those before the first stage are left out."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found: list[list[Instruction]] = []
    for line in lines:
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, arguments.strip()))
    return found


def last(name: str) -> str:
    """Arguments of the last instruction of that name in the image."""
    return [arguments for instruction, arguments in stages()[-1] if instruction == name][-1]


COMPOSE = ("compose.yaml", "compose.cluster.yaml")


@pytest.fixture(scope="module", params=COMPOSE)
def compose(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A compose file with the services that it takes from others."""
    files: dict[str, dict[str, Any]] = {name: YAML(typ="safe").load(REPOSITORY / "deploy" / name) for name in COMPOSE}
    found = files[request.param]
    for name, service in found["services"].items():
        if "extends" in service:
            other = service["extends"]
            found["services"][name] = files[other["file"]]["services"][other["service"]]
    return found


def bots(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The services of the image, by name."""
    return {name: service for name, service in compose["services"].items() if name != "database"}


def test_the_image_runs_as_a_numbered_user_that_owns_only_the_data() -> None:
    assert last("USER") == "10001:10001"
    owned = [arguments for name, arguments in stages()[-1] if name == "COPY" and "--chown" in arguments]
    assert owned == ["--from=build --chown=10001:10001 /data /data"]
    assert last("VOLUME") == "/data"
    variables = dict(re.findall(r"(\w+)=(\S+)", last("ENV")))
    assert {variables[name].split("/")[1] for name in ("HOME", "ROLLCALL_HOME", "ROLLCALL_LOGS")} == {"data"}


def test_the_image_needs_no_shell() -> None:
    check = last("HEALTHCHECK").partition(" CMD ")[2]
    commands = [json.loads(words) for words in (last("ENTRYPOINT"), last("CMD"), check)]
    assert [type(words) for words in commands] == [list, list, list]
    assert [name for name, _ in stages()[-1] if name == "RUN"] == []
    assert "/healthz" in commands[2][-1]
    compile(commands[2][-1], "HEALTHCHECK", "exec")


def test_all_that_the_image_copies_exists_and_is_sent_to_the_builder() -> None:
    copies = [arguments.split() for name, arguments in stages()[0] if name == "COPY"]
    sources = [source for *sources, _ in copies for source in sources]
    assert [source for source in sources if not (REPOSITORY / source).exists()] == []
    ignored = (REPOSITORY / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    sent = [line[1:] for line in ignored if line.startswith("!")]
    assert [one for one in sources if not any(Path(one.split("/")[0]).match(pattern) for pattern in sent)] == []
    packages = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert packages <= {source.rstrip("/") for source in sources}


def test_packages_are_locked_by_hashes() -> None:
    runs = [arguments for name, arguments in stages()[0] if name == "RUN"]
    assert runs[0] == "source deploy/bootstrap.sh && bootstrap requirements-all.txt requirements.txt"
    assert not any("pip install" in arguments or "apt-get" in arguments for arguments in runs)


def test_the_settings_of_the_image_are_valid_and_keep_everything_in_the_data() -> None:
    environment = {"ROLLCALL_HOME": "/data", "ROLLCALL_LOGS": "/data/logs"}
    settings, diagnostics = check_settings(REPOSITORY / "deploy" / "container.yaml", environment)
    assert settings is not None
    assert diagnostics.errors == []
    assert (str(settings.home), str(settings.logging.folder)) == ("/data", "/data/logs")


def test_every_service_of_compose_is_confined_and_checked(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    database = compose["services"]["database"]
    for bot in bots(compose).values():
        assert "cap_add" not in bot
        assert bot["depends_on"] == {"database": {"condition": "service_healthy"}}
        assert [port for port in bot.get("ports", ()) if not port.startswith("127.0.0.1:")] == []
    assert database["healthcheck"]["test"][0] == "CMD"
    assert "ports" not in database
    assert compose["networks"]["database"] == {"internal": True}


def test_secrets_of_compose_come_from_its_environment_file(compose: dict[str, Any]) -> None:
    example = (REPOSITORY / "deploy" / "compose.env.example").read_text(encoding="utf-8")
    offered = set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    for service in compose["services"].values():
        for name, value in service["environment"].items():
            if re.search("KEY|TOKEN|PASSWORD|_URL", name) and name != "OPENAI_BASE_URL":
                assert set(re.findall(r"\$\{(\w+)", value)) <= offered, name
                assert re.search(r"\$\{\w+:", value), name
    ignored = subprocess.run(
        ["git", "check-ignore", "-q", "deploy/compose.env"], cwd=REPOSITORY, env=os.environ, check=False
    )
    assert ignored.returncode == 0


def test_compose_builds_the_image_of_this_folder(compose: dict[str, Any]) -> None:
    for bot in bots(compose).values():
        context = REPOSITORY / "deploy" / bot["build"]["context"]
        assert (context / bot["build"]["dockerfile"]).resolve() == DOCKERFILE


@pytest.mark.parametrize("compose", ["compose.cluster.yaml"], indirect=True)
def test_the_cluster_of_compose_has_gateways_and_workers_that_share_all_but_logs_and_ports(
    compose: dict[str, Any],
) -> None:
    processes = bots(compose)
    roles = [service["command"][-1] for service in processes.values()]
    assert roles == ["gateway"] * 2 + ["worker"] * 3
    ports = [port for service in processes.values() for port in service.get("ports", ())]
    assert (len(ports), len(set(ports))) == (2, 2)
    environments = [dict(service["environment"]) for service in processes.values()]
    assert len({environment.pop("ROLLCALL_LOGS") for environment in environments}) == len(processes)
    assert [environment for environment in environments if environment != environments[0]] == []
    different = dict.fromkeys(("command", "environment", "ports"))
    assert len({json.dumps({**service, **different}, sort_keys=True) for service in processes.values()}) == 1
    variables = {"ROLLCALL_ENGINE": environments[0]["ROLLCALL_ENGINE"], "ROLLCALL_STORE_URL": "postgresql://database/x"}
    settings, found = check_settings(REPOSITORY / "deploy" / "container.yaml", variables)
    assert (found.errors, settings and settings.engine) == ([], "cluster")
