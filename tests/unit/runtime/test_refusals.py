"""What is said when the server refuses something, and for how long it is remembered."""

from __future__ import annotations

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock
from vcbatch.api.resources import JOBS
from vcbatch.core.machine import Emit
from vcbatch.interfaces.api import ApiError, Json
from vcbatch.runtime.apply import NotAppliedError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.controllers.departed import Departed
from vcbatch.runtime.controllers.refusals import Refusals, Report
from vcbatch.runtime.events.recorder import Recorder

REPORTED = {"create Pod": Report("FailedCreate"), "delete Pod": Report("FailedDelete", "Error deleting: ")}


class _Recorder(Recorder):
    def __init__(self) -> None:
        super().__init__(FakeApi(), clock=VirtualClock(), random=SeededRandom(1), component="test")
        self.said: list[str] = []

    def emit(self, event: Emit) -> None:
        self.said.append(f"{event.reason}: {event.message}")


def _refusals() -> tuple[Refusals, list[str]]:
    jobs: Cache[Json] = Cache()
    jobs.put({"metadata": {"uid": "u", "name": "j", "namespace": "ns", "resourceVersion": "1"}})
    recorder = _Recorder()
    return Refusals(JOBS, jobs, recorder, REPORTED), recorder.said


def _refused(part: str, message: str = "no", *, code: int = 403, reason: str = "Forbidden") -> NotAppliedError:
    return NotAppliedError(part, ApiError(code, reason, message))


def test_each_reason_is_told_once_and_again_when_its_words_change() -> None:
    refusals, said = _refusals()
    for refused in (
        _refused("create Pod"),
        _refused("delete Pod"),
        _refused("create Pod"),
        _refused("create Pod", "x"),
    ):
        refusals.carried_out("u", refused)
    assert said == ["FailedCreate: create Pod: no", "FailedDelete: Error deleting: no", "FailedCreate: create Pod: x"]
    assert refusals.of("u", "FailedDelete") == "no"
    assert refusals.last("u") == ("FailedCreate", "x")
    assert refusals.with_reason("FailedCreate") == ["u"]


def test_a_try_that_goes_well_ends_them_and_is_told_of_once() -> None:
    refusals, said = _refusals()
    ended: list[str] = []
    refusals.over = ended.append
    refusals.carried_out("u", _refused("create Pod"))
    refusals.carried_out("u", None)
    refusals.carried_out("u", None)
    assert ended == ["u"]
    assert refusals.last("u") is None
    refusals.carried_out("u", _refused("create Pod"))
    assert len(said) == 2


@pytest.mark.parametrize(
    "refused",
    [
        _refused("create Pod", code=409, reason="Conflict"),
        _refused("create Pod", code=0, reason=""),
        _refused("create Pod", code=503, reason="ServiceUnavailable"),
        _refused("ensure Lease"),
        NotAppliedError("create Pod", ApiError(403, "", "", details={"causes": [{"reason": "NamespaceTerminating"}]})),
    ],
    ids=["conflict", "no answer", "unavailable", "a part that nobody is told of", "its namespace goes"],
)
def test_what_passes_by_itself_is_not_worth_a_word(refused: NotAppliedError) -> None:
    refusals, said = _refusals()
    refusals.carried_out("u", refused)
    assert not said
    assert refusals.last("u") is None


def test_a_webhook_that_cannot_be_called_is() -> None:
    refusals, said = _refusals()
    refusals.carried_out("u", _refused("create Pod", code=500, reason="InternalError"))
    assert len(said) == 1


def test_who_goes_while_a_decision_is_carried_out_is_kept_for_the_next_one() -> None:
    departed: Departed[object] = Departed()
    first, again, other = object(), object(), object()
    departed.add("job", "a", first)
    assert departed.see("job") == (first,)
    departed.add("job", "a", again)
    departed.add("job", "b", other)
    departed.written_down("job")
    assert departed.see("job") == (again, other)
    departed.written_down("job")
    assert departed.see("job") == ()


def test_a_decision_that_fails_is_made_again_on_the_same() -> None:
    departed: Departed[str] = Departed()
    departed.add("job", "a", "pod")
    assert departed.see("job") == departed.see("job") == ("pod",)
