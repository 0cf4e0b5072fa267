"""Names of what is to be read are looked up before anything is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch import Job, NotFound, Task
from vcbatch.sdk.log_choice import Choice, chosen

INIT = {"template": {"spec": {"initContainers": [{"name": "fetch"}]}}}
JOB = Job(name="a", namespace="n", tasks=[Task(name="work", replicas=3), Task(name="worker", extra=INIT)])


def test_one_name_stands_for_a_list_of_one():
    assert chosen(JOB, "work", 2, "main") == Choice(
        tasks=frozenset({"work"}), indices=frozenset({2}), containers=frozenset({"main"})
    )
    assert chosen(JOB, ["worker"], [0, 5], ["fetch"]).tasks == {"worker"}
    assert chosen(JOB, None, None, None) == Choice(tasks=None, indices=None, containers=None)


@pytest.mark.parametrize(
    ("tasks", "indices", "containers", "reported", "hint"),
    [
        ("wrk", None, None, "no task 'wrk'", "work, worker"),
        (["work", "b"], None, None, "no task 'b'", "work, worker"),
        (None, None, "sidecar", "no container 'sidecar'", "fetch, main"),
        (None, 3, None, "no pod with index 3", "highest is 2"),
        ("worker", {1, 2}, None, "no pod with index 1, 2", "highest is 0"),
        (None, -1, None, "no pod with index -1", "highest is 2"),
        (None, [], None, "no pod", "highest is 2"),
    ],
)
def test_what_the_job_does_not_have_is_said(tasks: Any, indices: Any, containers: Any, reported: str, hint: str):
    with pytest.raises(NotFound, match=reported) as caught:
        chosen(JOB, tasks, indices, containers)
    assert hint in caught.value.hint and "n/a" in caught.value.message
