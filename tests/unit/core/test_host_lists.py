"""Lists of hosts that are too long for where a plugin would put them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.admission_world import World as Rules
from tests.support.admission_world import queue
from tests.support.job_world import Json, World, job_object, task
from vcbatch.api.admission import Operation, Request, Settings, review
from vcbatch.api.defaults import default_job
from vcbatch.api.host_lists import LARGEST_ENVIRONMENT, host_lists, in_environment, left_out
from vcbatch.api.job import Job
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import CONFIGMAPS, JOBS, SECRETS
from vcbatch.api.validate import job_errors, sentence
from vcbatch.core.job.plan import plan_of
from vcbatch.core.job.plugins import load

RULES = Rules(known=[queue("root"), queue("default")])


def made(replicas: int, *, name: str = "train", plugins: Json | None = None, **pod: Any) -> Job:
    worker = task("worker", replicas)
    worker["template"]["spec"] |= pod
    asked = job_object(name, tasks=[task("master", 1), worker], plugins=plugins or {"svc": []})
    return Job.parse(default_job(asked))


def first_pod(job: Job, of: str = "worker") -> Json:
    plan = plan_of(job)
    pod: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}]}}
    load(plan).change_pod(pod, task=plan.tasks[of], index=0)
    return pod


def variables(job: Job, of: str = "worker") -> dict[str, Json]:
    return {entry["name"]: entry for entry in first_pod(job, of)["spec"]["containers"][0].get("env") or ()}


def child(job: Job, resource: Any) -> Json:
    return next(each.body for each in load(plan_of(job)).children() if each.resource == resource)


def refusal(job: Job) -> str:
    return sentence(job_errors(job, RULES))


pods = st.fixed_dictionaries(
    {}, optional={"hostname": st.just("here"), "subdomain": st.sampled_from(["s", "elsewhere"])}
)


@settings(max_examples=60)
@given(replicas=st.integers(0, 1203), pod=pods, name=st.sampled_from(["a", "train-2"]))
def test_what_is_counted_is_what_is_written(replicas: int, pod: Json, name: str) -> None:
    job = made(replicas, name=name, plugins={"svc": [], "ssh": ["--ssh-port=2222"]}, **pod)
    data = child(job, CONFIGMAPS)["data"]
    for each in host_lists(job.spec, name):
        written = data[f"VC_{each.task.upper()}_HOSTS"]
        assert (each.joined, each.variable) == (len(written), len(f"VC_{each.task.upper()}_HOSTS={written}"))
        assert str(each.count) == data[f"VC_{each.task.upper()}_NUM"]


def test_long_lists_are_in_the_files_alone_and_the_job_says_so() -> None:
    job = made(2000)
    assert variables(job).keys() == {"VC_MASTER_NUM", "VC_WORKER_NUM"}
    assert first_pod(job)["spec"]["containers"][0]["volumeMounts"] == [
        {"name": "train-svc", "mountPath": "/etc/volcano"}
    ]
    assert child(job, CONFIGMAPS)["data"]["worker.host"].count("\n") == 1999
    assert refusal(job) == ""
    size = sum(each.variable for each in host_lists(job.spec, "train"))
    assert f"would have {size} bytes, above 32768" in left_out(job.spec, "train")

    world = World()
    world.submit(job_object("train", tasks=[task("master", 1), task("worker", 2000)], plugins={"svc": []}))
    events = world.reconcile("train").events
    assert [event.message for event in events if event.reason == JobReason.HOSTS_IN_FILES_ONLY] == [
        left_out(job.spec, "train")
    ]


def test_a_user_who_applies_such_a_job_is_warned() -> None:
    body = default_job(job_object("train", tasks=[task("worker", 2000)], plugins={"svc": []}))
    request = Request(resource=JOBS, operation=Operation.CREATE, name="train", namespace="ns", object=body)
    warnings = [text for text in review(request, RULES, Settings()).warnings if "VC_<TASK>_HOSTS" in text]
    assert len(warnings) == 1
    assert len(warnings[0]) <= 256


def test_the_bound_is_exact() -> None:
    fits = max(count for count in range(900, 1500) if in_environment(host_lists(made(count).spec, "train"), []))
    total = sum(each.variable for each in host_lists(made(fits).spec, "train"))
    more = sum(each.variable for each in host_lists(made(fits + 1).spec, "train"))
    assert total <= LARGEST_ENVIRONMENT < more
    assert "VC_WORKER_HOSTS" in variables(made(fits))
    assert left_out(made(fits).spec, "train") == ""
    assert "VC_WORKER_HOSTS" not in variables(made(fits + 1))


def test_who_asks_for_the_variables_gets_them_while_a_process_can_take_them() -> None:
    asked = {"svc": ["--inject-hosts-env"]}
    assert "VC_WORKER_HOSTS" in variables(made(2000, plugins=asked))
    assert left_out(made(2000, plugins=asked).spec, "train") == ""
    assert refusal(made(2000, plugins=asked)) == ""
    assert "the variable VC_WORKER_HOSTS would have" in refusal(made(6000, plugins=asked))
    assert variables(made(2, plugins={"svc": ["--inject-hosts-env=false"]})) == {}


@pytest.mark.parametrize(
    ("replicas", "plugins", "said"),
    [
        (30000, {"svc": []}, "bytes, and a ConfigMap holds 1048576"),
        (20000, {"svc": [], "ssh": []}, "bytes, and a Secret holds 1048576"),
        (6000, {"svc": [], "ssh": [], "mpi": []}, "the variable MPI_HOST would have"),
        (5000, {"svc": [], "tensorflow": []}, "the variable TF_CONFIG would have"),
    ],
)
def test_what_fits_nowhere_is_refused_with_its_size(replicas: int, plugins: Json, said: str) -> None:
    assert said in refusal(made(replicas, plugins=plugins))
    assert refusal(made(200, plugins=plugins)) == ""


@pytest.mark.parametrize("replicas", [1, 7, 250])
def test_sizes_of_the_frameworks_lists_are_those_of_what_is_written(
    replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit just below what is written the job is refused, and with one a little above it isn't."""
    plugins: Json = {"svc": ["--inject-hosts-env=false"], "ssh": [], "mpi": [], "tensorflow": ["--chief=master"]}
    job = made(replicas, plugins=plugins)
    found = variables(job, "master")
    config = base64.b64decode(child(job, SECRETS)["data"]["config"])
    assert json.loads(found["TF_CONFIG"]["value"])["cluster"]["worker"][0] == "train-worker-0.train:2222"
    for name, most in (("MPI_HOST", 0), ("TF_CONFIG", 16)):
        exact = len(f"{name}={found[name]['value']}")
        for limit, fits in ((exact - 1, False), (exact + most, True)):
            monkeypatch.setattr("vcbatch.api.validate.hosts.LARGEST_VARIABLE", limit)
            assert (f"the variable {name}" not in refusal(job)) is fits
    for limit, fits in ((len(config) - 1, False), (len(config) + 5000, True)):
        monkeypatch.setattr("vcbatch.api.validate.hosts.LARGEST_CONFIG_MAP", limit)
        assert ("a Secret holds" not in refusal(job)) is fits
