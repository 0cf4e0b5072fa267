"""The flags of `vcbatch controllers` and `vcbatch scheduler`: Volcano's names, and no wrong value gets through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from vcbatch.cli.base.output import CliError
from vcbatch.cli.components import controllers, scheduler
from vcbatch.cli.components.component import Program
from vcbatch.cli.components.options import ComponentOptions
from vcbatch.runtime.serving import Address

COMMANDS: dict[str, click.Command] = {"controllers": controllers.command, "scheduler": scheduler.command}


class Started:
    """What a command would have run with."""

    options: ComponentOptions


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started()

    def run_component(options: ComponentOptions, work: Any, program: Program) -> int:
        options.election(name=program.name, identity="me")
        found.options = options
        return 0

    for module in (controllers, scheduler):
        monkeypatch.setattr(module, "run_component", run_component)
    return found


def run(command: str, *flags: str) -> Result:
    return CliRunner().invoke(COMMANDS[command], flags)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("flags", "elects"),
    [
        ([], True),
        (["--leader-elect"], True),
        (["--leader-elect=true"], True),
        (["--leader-elect=false"], False),
        (["--leader-elect=F"], False),
        (["--leader-elect", "--context", "c"], True),
    ],
)
def test_leader_election_is_turned_off_as_in_go(started: Started, command: str, flags: list[str], elects: bool) -> None:
    assert run(command, *flags).exit_code == 0
    assert started.options.leader_elect is elects


def test_addresses_and_times_arrive(started: Started) -> None:
    said = run(
        "controllers", "--healthz-address=:11252", "--listen-address", "127.0.0.1:8081",
        "--leader-elect-lease-duration=1m", "--leader-elect-renew-deadline", "40.5",
        "--leader-elect-retry-period=500ms",
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    options = started.options
    assert (options.healthz_address, options.listen_address) == (Address(None, 11252), Address("127.0.0.1", 8081))
    election = options.election(name="n", identity="me")
    assert (election.duration, election.renew_deadline, election.retry_period) == (60.0, 40.5, 0.5)
    assert (election.namespace, election.name) == ("volcano-system", "n")


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["--leader-elect=maybe"], "--leader-elect"),
        (["--leader-elect=yes"], "--leader-elect"),
        (["--healthz-address", "11251"], "--healthz-address"),
        (["--listen-address", "host:99999"], "--listen-address"),
        (["--leader-elect-lease-duration=10s"], "renew deadline"),
        (["--leader-elect-lease-duration=15.5"], "whole seconds"),
        (["--leader-elect-retry-period=9s"], "retry period"),
        (["--leader-elect-retry-period=-1s"], "--leader-elect-retry-period"),
        (["--log-level", "loud"], "--log-level"),
        (["--master=x"], "--master"),
        (["more"], "more"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_flag_is_named_and_ends_with_2(started: Started, command: str, flags: list[str], names: str) -> None:
    said = run(command, *flags)
    assert said.exit_code == 2
    assert names in said.output


@pytest.mark.parametrize("period", ["0", "0s", "-1", "x", "1 s", "1_0", "inf", "nan", ""])
def test_a_schedule_period_is_a_span_above_zero(started: Started, period: str) -> None:
    said = run("scheduler", f"--schedule-period={period}")
    assert said.exit_code == 2
    assert "--schedule-period" in said.output


@pytest.mark.parametrize("period", ["1s", "500ms", "1m30s", "2", "0.25", "+1s"])
def test_a_schedule_period_is_written_as_in_go_or_in_seconds(started: Started, period: str) -> None:
    assert run("scheduler", f"--schedule-period={period}").exit_code == 0


def test_a_policy_that_cant_be_read_is_named(started: Started, tmp_path: Path) -> None:
    assert run("scheduler", "--scheduler-conf", str(tmp_path / "none")).exit_code == 2
    bad = tmp_path / "bad.yaml"
    bad.write_text("actions: sing\n")
    said = run("scheduler", "--scheduler-conf", str(bad))
    assert said.exit_code != 0
    assert str(bad) in str(said.exception)


def test_a_sharding_configuration_has_to_be_one(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "sharding.yaml"
    file.write_text("schedulerConfigs: [{name: volcano}]\n")
    assert run("controllers", "--sharding-conf", str(file)).exit_code == 0
    file.write_text("schedulerConfigs: []\n")
    refused = run("controllers", "--sharding-conf", str(file))
    assert isinstance(refused.exception, CliError)
    assert str(refused.exception) == f"{file}: schedulerConfigs: nothing there, want at least one scheduler"


def test_an_accounting_store_has_to_be_a_url_that_can_work(started: Started, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/accounting.db"
    assert run("controllers", "--accounting-store", url).exit_code == 0
    refused = run("controllers", "--accounting-store", "mysql://user:secret@host/database")
    assert isinstance(refused.exception, CliError)
    assert str(refused.exception).startswith("unknown accounting store 'mysql'")
    assert "secret" not in str(refused.exception)


def test_a_controller_configuration_has_to_be_one(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "volcano-controller.conf"
    file.write_text("networkTopologyDiscovery: []\n")
    assert run("controllers", "--controller-conf", str(file), "--inherit-owner-annotations=false").exit_code == 0
    file.write_text("networkTopologyDiscovery: 3\n")
    refused = run("controllers", "--controller-conf", str(file))
    assert isinstance(refused.exception, CliError)
    assert str(refused.exception) == f"{file}: networkTopologyDiscovery: want a list"
    assert run("controllers", "--controller-conf", str(tmp_path / "none")).exit_code == 2
    assert run("controllers", "--inherit-owner-annotations=perhaps").exit_code == 2
