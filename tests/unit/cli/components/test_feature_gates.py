"""Feature gates of the programs, as Volcano's flag takes them."""

from __future__ import annotations

import click
import pytest

from vcbatch.cli.components import scheduler, webhooks
from vcbatch.cli.local import up

NAME = "SchedulingGatesQueueAdmission"


def read(value: str, command: click.Command = scheduler.command) -> dict[str, bool]:
    (option,) = [p for p in command.params if p.name == "feature_gates"]
    assert option.callback is not None
    return dict(option.callback(click.Context(command), option, value))


def test_the_gate_of_queue_admission_is_off_unless_it_is_named() -> None:
    assert read("") == {}
    assert read(f"{NAME}=true") == {NAME: True}
    assert read(f" {NAME}=False,") == {NAME: False}


@pytest.mark.parametrize("value", ["Other=true", NAME, f"{NAME}=maybe", f"{NAME}=true,Other=false"])
def test_others_are_refused_by_name(value: str) -> None:
    with pytest.raises(click.BadParameter, match=f"must be {NAME}=true or {NAME}=false, got "):
        read(value)


@pytest.mark.parametrize("command", [webhooks.command, up.command])
def test_all_programs_that_have_to_do_with_gates_take_it(command: click.Command) -> None:
    assert read(f"{NAME}=true", command) == {NAME: True}
