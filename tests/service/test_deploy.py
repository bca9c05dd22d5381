"""The deployment files match their documentation, and their settings are read."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from carag.cli._configuration import Configuration
from carag.policy import Profile
from carag.service.grants import Grants

yaml = pytest.importorskip("yaml")

DEPLOY = Path(__file__).parents[2] / "docs" / "how-to" / "deploy"
SECRET = re.compile("pass(word)?|secret|token|key|credential", re.IGNORECASE)


@pytest.fixture
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


@pytest.fixture
def unit() -> list[tuple[str, str]]:
    lines = (DEPLOY / "carag.service").read_text().splitlines()
    return [
        (name, value)
        for name, sign, value in (line.partition("=") for line in lines)
        if sign and name[0] != "#"
    ]


def test_the_container_writes_only_its_store_and_gains_no_privilege(compose: dict[str, Any]) -> None:
    (one,) = compose["services"].values()
    assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert one["user"].split(":")[0] not in ("0", "root")
    assert [volume.split(":")[0] for volume in one["volumes"]] == [*compose["volumes"]]
    assert one["mem_limit"]
    assert not one.get("privileged")


def test_every_file_named_by_compose_exists_or_is_the_users_own(compose: dict[str, Any]) -> None:
    """And each one that the service uses is declared."""
    (one,) = compose["services"].values()
    named = {entry["file"] for entry in compose["configs"].values()}
    assert all((DEPLOY / file).is_file() for file in named)
    assert {entry["source"] for entry in one["configs"]} == set(compose["configs"])
    assert set(one["secrets"]) == set(compose["secrets"])
    build = one["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert (context / build["dockerfile"]).samefile(DEPLOY / "Containerfile")


def test_no_secret_is_in_an_environment(compose: dict[str, Any], unit: list[tuple[str, str]]) -> None:
    """Neither of a container, its image, nor the unit."""
    (one,) = compose["services"].values()
    assert not {"environment", "env_file"} & set(one)
    variables = re.findall(r"^(?:ENV|ARG) (.+)", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    variables += [
        value for name, value in unit if name in ("Environment", "EnvironmentFile", "PassEnvironment")
    ]
    assert not [line for line in variables if SECRET.search(line)]
    assert any(name == "LoadCredential" for name, _ in unit)


def test_the_final_image_has_no_compiler_and_no_root() -> None:
    *_, last = re.split("^FROM ", (DEPLOY / "Containerfile").read_text(), flags=re.MULTILINE)
    assert "gcc" not in last
    assert re.search(r"^USER [1-9]\d*", last, re.MULTILINE)


def test_the_image_is_built_without_keys_and_stores() -> None:
    """The build copies the whole directory, so secrets in it are excluded by name."""
    left_out = set((DEPLOY.parents[2] / ".dockerignore").read_text().splitlines())
    assert {
        "**/*.key",
        "**/*.pem",
        "**/*.db",
        "**/*.db-*",
        "quickstart-store/",
        ".venv/",
        ".git/",
    } <= left_out


def test_the_image_reads_every_kind_of_file() -> None:
    """Who brings PDF or DOCX there needs the readers."""
    extras = re.search(r"/source\[([a-z,]+)\]", (DEPLOY / "Containerfile").read_text())
    assert extras is not None
    assert {"service", "models", "readers"} == set(extras[1].split(","))


def test_the_unit_confines_the_service(unit: list[tuple[str, str]]) -> None:
    """What it may write is its state directory, and no capability is left."""
    said = dict(unit)
    wanted = {
        "DynamicUser": "yes",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "CapabilityBoundingSet": "",
        "StateDirectory": "carag",
        "StateDirectoryMode": "0700",
    }
    assert wanted == {name: said.get(name) for name in wanted}
    assert said["MemoryMax"]
    assert "ReadWritePaths" not in said


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_knows_every_line_of_the_unit_and_rates_it_low(tmp_path: Path) -> None:
    """An exposure of at most 2.0 of 10, and no unknown setting."""
    unit = tmp_path / "carag.service"
    unit.write_text((DEPLOY / "carag.service").read_text().replace("/opt/carag/bin/carag", "/bin/true"))
    ran = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert not [line for line in (ran.stdout + ran.stderr).splitlines() if "carag.service" in line]
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_settings_and_grants_are_read(tmp_path: Path) -> None:
    found = Configuration(DEPLOY / "carag.toml").service()
    assert (found.listen, found.certificate) == ("0.0.0.0", "/run/secrets/certificate")  # noqa: S104 - with TLS
    grants = Grants.read(DEPLOY / "grants.toml", Profile.open("generic").table)
    assert grants.duties["editors"] == ("operate",)
