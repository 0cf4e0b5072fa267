"""How commands learn how the scheduler is set up: by options, else as `vcbatch up` of this machine left it, else as the
scheduler's Lease says."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tests.fakes.api import FakeApi
from tests.unit.cli.base.test_access import config
from vcbatch.api.resources import LEASES
from vcbatch.api.timestamps import format_micro_time
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.local_scheduler import LocalScheduler, leave, local_scheduler
from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import StateDir, start_time_of
from vcbatch.cli.whatif.scheduler_setup import Setup, SetupOptions
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.client.oneshot import drive
from vcbatch.runtime.scheduling.lease_notice import LeaseNotice
from vcbatch.scheduler import Policy, default_policy, parse_policy
from vcbatch.scheduler.simulation.recording import Settings

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DRF = "actions: allocate\ntiers:\n- plugins:\n  - name: drf\n"
OWN = """
from vcbatch.scheduler.framework.plugin import Plugin
class Mine(Plugin):
    pass
PLUGINS = {"mine": Mine}
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDir:
    """Of a server that runs; this process stands for it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "default"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    made = StateDir(tmp_path / "default" / "vcbatch")
    config(made.kubeconfig, "https://127.0.0.1:6443")
    (made.path / "pid").write_text(f"{os.getpid()} {start_time_of(os.getpid())}")
    return made


def left(state: StateDir, *, policy: str | None = None, **more: Any) -> None:
    settings = Settings(taken=NOW, policy=policy, scheduler_names=("volcano", "second"), default_queue="all")
    leave(state, LocalScheduler(settings=settings, **more))


def read(access: Access, server: Any = None, **options: Any) -> Setup:
    api = FakeApi() if server is None else server
    return drive(SetupOptions(**options).read(cast("Api", api), access, now=NOW))


def names(policy: Policy) -> list[str]:
    return [option.name for tier in policy.tiers for option in tier.plugins]


def test_the_server_of_this_machine_says_what_options_leave_open(state: StateDir, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    left(state, policy=DRF, policy_file=file)
    found = read(Access())
    assert (names(found.policy), found.source) == (["drf"], f"{file} (vcbatch up)")
    assert (found.settings.scheduler_names, found.settings.default_queue) == (("volcano", "second"), "all")
    assert parse_policy(found.settings.policy or "").actions == ("allocate",)
    over = read(Access(), names=("other",), default_queue="mine")
    assert (over.settings.scheduler_names, over.settings.default_queue) == (("other",), "mine")


def test_a_file_that_is_named_goes_before(state: StateDir, tmp_path: Path) -> None:
    left(state)
    assert read(Access()).source == "built-in default (vcbatch up)"
    file = tmp_path / "policy.yaml"
    file.write_text(DRF)
    found = read(Access(), policy_file=file)
    assert (names(found.policy), found.source) == (["drf"], str(file))
    assert found.settings.scheduler_names == ("volcano", "second")


def test_plugins_of_ones_own_are_known_again(state: StateDir, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(OWN)
    left(state, policy=DRF.replace("drf", "mine"), plugins=[plugin])
    assert names(read(Access()).policy) == ["mine"]
    plugin.unlink()
    with pytest.raises(CliError, match=r"mine\.py"):
        read(Access())


def test_another_server_is_not_taken_for_it(state: StateDir, tmp_path: Path) -> None:
    left(state)
    other = config(tmp_path / "other" / "config", "https://cluster:6443")
    assert local_scheduler(Access(kubeconfig=other)) is None
    found = read(Access(kubeconfig=other))
    assert (found.source, found.settings) == ("", Settings(taken=NOW))
    assert found.unknown == (
        "scheduler configuration unknown: Lease volcano-system/vcbatch-scheduler not found; "
        "pass --policy or --scheduler-configmap"
    )
    assert local_scheduler(Access(kubeconfig=state.kubeconfig)) is not None
    (state.path / "pid").write_text("1 1")
    assert local_scheduler(Access(kubeconfig=state.kubeconfig)) is None, "it ended"


def test_a_state_directory_is_found_by_the_kubeconfig_in_it(
    state: StateDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "elsewhere"
    left(state)
    state.path.rename(moved)
    monkeypatch.setenv("KUBECONFIG", str(moved / "kubeconfig"))
    assert local_scheduler(Access()) is not None
    monkeypatch.delenv("KUBECONFIG")
    assert local_scheduler(Access(kubeconfig=moved / "kubeconfig")) is not None


def test_what_a_server_of_another_version_left_is_said(state: StateDir) -> None:
    left(state)
    content = json.loads(state.scheduler.read_text())
    content["settings"]["format"] = "vcbatch-snapshot/1"
    state.scheduler.write_text(json.dumps(content))
    with pytest.raises(CliError, match="it is of version 1 of the format, and only") as reported:
        local_scheduler(Access())
    assert "vcbatch down" in reported.value.hint


# On its Lease --------------------------------------------------------------------------------------------------------

SOURCE = "ConfigMap volcano-system/policy"
UNKNOWN = "scheduler configuration unknown: "


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Access:
    """At a cluster that isn't of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "default"))
    return Access(kubeconfig=config(tmp_path / "config", "https://cluster:6443"))


def reporting(
    policy: str = DRF,
    *,
    source: str = SOURCE,
    name: str = "vcbatch-scheduler",
    holder: str = "me",
    age: float = 1,
    **settings: Any,
) -> FakeApi:
    """A server with the Lease of a scheduler, renewed so many seconds ago."""
    server = FakeApi()
    notice = LeaseNotice.of("me", source, Settings(taken=NOW, **settings), parse_policy(policy))
    metadata = {"name": name, "namespace": "volcano-system", "annotations": notice.annotations()}
    renewed = format_micro_time(NOW - timedelta(seconds=age))
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    server.seed(LEASES, {"metadata": metadata, "spec": spec})
    return server


def test_a_lease_says_whose_policy_it_is_and_how_the_scheduler_was_started(elsewhere: Access) -> None:
    found = read(elsewhere, reporting(scheduler_names=("volcano", "second"), default_queue="all", queue_gates=True))
    assert (names(found.policy), found.source) == (["drf"], SOURCE)
    assert (found.lease, found.doubt, found.unknown) == ("volcano-system/vcbatch-scheduler", "", "")
    assert (found.settings.scheduler_names, found.settings.default_queue) == (("volcano", "second"), "all")
    assert found.settings.queue_gates
    assert parse_policy(found.settings.policy or "").actions == ("allocate",)
    assert read(elsewhere, reporting(source="")).source == "built-in default"


def test_options_go_before_what_a_lease_says(elsewhere: Access, tmp_path: Path) -> None:
    server = reporting(scheduler_names=("volcano", "second"), default_queue="all")
    assert read(elsewhere, server, names=("other",)).settings.scheduler_names == ("other",)
    file = tmp_path / "policy.yaml"
    file.write_text(DRF.replace("drf", "gang"))
    found = read(elsewhere, server, policy_file=file)
    assert (names(found.policy), found.source, found.lease) == (["gang"], str(file), "")
    assert found.settings.default_queue == "all", "what it leaves open is as the scheduler says"
    assert read(elsewhere, policy_file=file).unknown == "", "and as usual where nobody says"


def test_another_lease_may_be_named(elsewhere: Access, state: StateDir) -> None:
    server = reporting(name="second")
    found = read(elsewhere, server, lease="volcano-system/second")
    assert (names(found.policy), found.lease) == (["drf"], "volcano-system/second")
    left(state)
    assert read(Access(), server).source == "built-in default (vcbatch up)"
    assert read(Access(), server, lease="volcano-system/second").source == SOURCE
    with pytest.raises(CliError, match=r"--scheduler-lease volcano-system/none: Lease volcano-system/none not found"):
        read(elsewhere, server, lease="volcano-system/none")
    with pytest.raises(CliError, match=r"--scheduler-lease: must be NAMESPACE/NAME, got 'second'"):
        read(elsewhere, server, lease="second")


@pytest.mark.parametrize(
    ("lease", "doubt"),
    [
        ({"age": 29}, ""),
        ({"age": 31}, "that Lease has no holder"),
        ({"holder": ""}, "that Lease has no holder"),
        ({"holder": "you"}, "the current leader you hasn't published its configuration"),
    ],
)
def test_what_may_not_hold_any_more_is_doubted(elsewhere: Access, lease: dict[str, Any], doubt: str) -> None:
    found = read(elsewhere, reporting(**lease))
    assert (names(found.policy), found.doubt) == (["drf"], doubt)


def test_why_a_policy_is_not_known_is_said(elsewhere: Access, tmp_path: Path) -> None:
    def why(server: Any, **options: Any) -> str:
        found = read(elsewhere, server, **options)
        assert (found.source, names(found.policy)) == ("", names(default_policy()))
        assert found.unknown.startswith(UNKNOWN)
        return found.unknown.removeprefix(UNKNOWN).partition("; pass --policy or")[0]

    silent = FakeApi()
    silent.seed(LEASES, {"metadata": {"name": "vcbatch-scheduler", "namespace": "volcano-system"}, "spec": {}})
    assert why(silent) == "Lease volcano-system/vcbatch-scheduler has no configuration"

    newer = reporting()
    annotations = newer.objects[(LEASES, "volcano-system", "vcbatch-scheduler")]["metadata"]["annotations"]
    annotations["vcbatch.dev/scheduler"] = annotations["vcbatch.dev/scheduler"].replace("snapshot/2", "snapshot/9")
    assert why(newer) == (
        "the configuration in Lease volcano-system/vcbatch-scheduler can't be read: annotation vcbatch.dev/scheduler: "
        "it is of version 9 of the format, and only 2 is read here"
    )
    long = reporting()
    annotations = long.objects[(LEASES, "volcano-system", "vcbatch-scheduler")]["metadata"]["annotations"]
    annotations["vcbatch.dev/policy"] = ""
    assert why(long) == f"the configuration in {SOURCE} is too large for Lease volcano-system/vcbatch-scheduler"

    own = reporting()
    annotations = own.objects[(LEASES, "volcano-system", "vcbatch-scheduler")]["metadata"]["annotations"]
    annotations["vcbatch.dev/policy"] = DRF.replace("drf", "mine")
    assert why(own) == (
        "the configuration in Lease volcano-system/vcbatch-scheduler can't be used: "
        "policy.tiers[0].plugins[0].name: unknown "
        "plugin 'mine' (pass custom plugins with --plugin)"
    )
    plugin = tmp_path / "mine.py"
    plugin.write_text(OWN)
    assert names(read(elsewhere, own, plugins=(plugin,)).policy) == ["mine"]


@pytest.mark.parametrize("code", [403, 500])
def test_a_lease_that_may_not_be_read_is_told_from_a_server_that_fails(elsewhere: Access, code: int) -> None:
    class Refusing:
        async def get(self, *_: Any, **__: Any) -> Any:
            raise ApiError(code, "Refused", "no")

    if code == 500:
        with pytest.raises(ApiError):
            read(elsewhere, Refusing())
    else:
        said = read(elsewhere, Refusing()).unknown
        assert said.startswith(
            f"{UNKNOWN}no permission to read Lease volcano-system/vcbatch-scheduler; pass --policy or"
        )
