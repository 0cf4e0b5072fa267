"""Plugins that fail: counted and logged each time, an event where it concerns no gang."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import EVENTS, LEASES
from vcbatch.observe.metrics import PrometheusMeter
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.plugin_trouble import PluginTrouble
from vcbatch.scheduler.model.result import PluginFailure

ABOUT_NOBODY = PluginFailure(name="mine", hook="open", place="mine.py:3", error="KeyError: 'x'", gang="")
ABOUT_A_GANG = ABOUT_NOBODY._replace(hook="job_key", gang="ns/g")


def test_what_concerns_no_gang_is_an_event_on_the_lease(caplog: pytest.LogCaptureFixture):
    async def main() -> None:
        server, meter = FakeApi(), PrometheusMeter()
        server.seed(LEASES, {"metadata": {"name": "lease", "namespace": "ns"}})
        recorder = Recorder(server, clock=VirtualClock(), random=SeededRandom(1), component="volcano")
        trouble = PluginTrouble(recorder, OwnObject(server, LEASES, "ns", "lease"), meter=meter)
        task = asyncio.ensure_future(trouble.run())
        trouble.failed([ABOUT_NOBODY, ABOUT_A_GANG])
        await asyncio.sleep(1)
        await recorder.flush()
        [event] = server.all(EVENTS)
        assert (event["involvedObject"]["kind"], event["type"], event["reason"]) == (
            "Lease",
            "Warning",
            "PluginFailed",
        )
        assert event["message"].endswith("mine.open (mine.py:3) raised KeyError: 'x'")
        assert meter.registry.get_sample_value("vcbatch_plugin_failures_total", {"plugin": "mine"}) == 2
        assert "ns/g is set aside: mine.job_key (mine.py:3) raised KeyError: 'x'" in caplog.text
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_what_takes_long_is_an_event_on_the_lease_too():
    async def main() -> None:
        server, meter = FakeApi(), PrometheusMeter()
        server.seed(LEASES, {"metadata": {"name": "lease", "namespace": "ns"}})
        recorder = Recorder(server, clock=VirtualClock(), random=SeededRandom(1), component="volcano")
        trouble = PluginTrouble(recorder, OwnObject(server, LEASES, "ns", "lease"), meter=meter)
        task = asyncio.ensure_future(trouble.run())
        trouble.slow("mine", "mine.open (mine.py:3)")
        await asyncio.sleep(1)
        await recorder.flush()
        [event] = server.all(EVENTS)
        said = "nothing else was decided while a cycle waited for mine.open (mine.py:3)"
        assert (event["type"], event["reason"], event["message"]) == ("Warning", "PluginSlow", said)
        assert meter.registry.get_sample_value("vcbatch_plugin_slow_cycles_total", {"plugin": "mine"}) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
