"""What a person types, with the real kubectl, against `vcbatch up`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from textwrap import dedent

import pytest

from tests.cluster.processes import wait_until
from tests.support.up import Kubectl

Call = Callable[..., Kubectl]
pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl")]

CONFIGMAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n"


def job(name: str = "j", *, command: str = "sleep 60", replicas: int = 2, queue: str = "default") -> str:
    return dedent(f"""\
        apiVersion: batch.volcano.sh/v1alpha1
        kind: Job
        metadata:
          name: {name}
        spec:
          minAvailable: {replicas}
          queue: {queue}
          tasks:
            - name: worker
              replicas: {replicas}
              template:
                spec:
                  restartPolicy: Never
                  terminationGracePeriodSeconds: 1
                  containers:
                    - name: main
                      image: busybox
                      command: ["sh", "-c", "{command}"]
                      resources: {{requests: {{cpu: 10m, memory: 8Mi}}}}
        """)


def phase(kubectl: Call, name: str, wanted: str) -> None:
    kubectl("wait", f"vcjob/{name}", f"--for=jsonpath={{.status.state.phase}}={wanted}", "--timeout=60s").ok()


def test_discovery_lists_our_kinds_with_short_names(kubectl: Call) -> None:
    out = kubectl("api-resources", "--no-headers").ok()
    for line in (
        r"jobs +vcjob,vj +batch\.volcano\.sh/v1alpha1 +true +Job",
        r"queues +q,queue-v1beta1 +scheduling\.volcano\.sh/v1beta1 +false +Queue",
        r"podgroups +pg,podgroup-v1beta1 +scheduling\.volcano\.sh/v1beta1 +true +PodGroup",
        r"pods +po +v1 +true +Pod",
    ):
        assert re.search(rf"^{line}", out, re.MULTILINE), (line, out)
    assert "batch.volcano.sh/v1alpha1" in kubectl("api-versions").ok()


def test_explain_knows_builtin_and_custom_fields(kubectl: Call) -> None:
    assert "minAvailable" in kubectl("explain", "vcjob.spec").ok()
    assert "restartPolicy" in kubectl("explain", "vcjob.spec.tasks.template.spec").ok()
    assert "containers" in kubectl("explain", "pod.spec").ok()
    assert "does not exist" in kubectl("explain", "vcjob.spec.nothing").fails()


def test_apply_twice_and_change(kubectl: Call) -> None:
    assert "configmap/c created" in kubectl("apply", "-f", "-", stdin=CONFIGMAP).ok()
    assert "configmap/c unchanged" in kubectl("apply", "-f", "-", stdin=CONFIGMAP).ok()
    assert "configmap/c configured" in kubectl("apply", "-f", "-", stdin=CONFIGMAP.replace("'1'", "'2'")).ok()
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}").ok() == "2"


def test_create_of_builtin_kinds_sends_protobuf_bodies(kubectl: Call) -> None:
    assert "configmap/m created" in kubectl("create", "configmap", "m", "--from-literal=k=v").ok()
    assert "secret/s created" in kubectl("create", "secret", "generic", "s", "--from-literal=k=v").ok()
    assert "serviceaccount/sa created" in kubectl("create", "serviceaccount", "sa").ok()
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}").ok() == "dg=="
    assert kubectl("get", "cm", "m", "-o", "jsonpath={.data.k}").ok() == "v"


def test_a_job_runs_and_is_shown(kubectl: Call) -> None:
    assert "job.batch.volcano.sh/j created" in kubectl("create", "-f", "-", stdin=job(command="echo hello")).ok()
    phase(kubectl, "j", "Completed")
    table = kubectl("get", "vcjob").ok().splitlines()
    assert table[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert table[1].split()[:3] == ["j", "Completed", "2"]
    assert kubectl("get", "vcjob", "-o", "wide").ok().splitlines()[0].split()[-1] == "QUEUE"
    assert kubectl("get", "pods", "-o", "name").ok().split() == ["pod/j-worker-0", "pod/j-worker-1"]
    assert "Completed" in kubectl("get", "pod", "j-worker-0").ok()
    assert kubectl("logs", "j-worker-0").ok() == "hello\n"
    assert json.loads(kubectl("get", "vcjob", "j", "-o", "json").ok())["status"]["succeeded"] == 2
    assert "kind: Job" in kubectl("get", "vcjob", "j", "-o", "yaml").ok()


def test_logs_follow_until_the_end(kubectl: Call) -> None:
    # Long enough that it still runs when it is asked for.
    kubectl("create", "-f", "-", stdin=job(command="for i in 1 2 3; do echo line $i; sleep 3; done", replicas=1)).ok()
    phase(kubectl, "j", "Running")
    assert kubectl("logs", "-f", "j-worker-0").ok() == "line 1\nline 2\nline 3\n"
    assert kubectl("logs", "--tail=1", "j-worker-0").ok() == "line 3\n"


def test_describe_shows_events(kubectl: Call) -> None:
    kubectl("create", "-f", "-", stdin=job(command="true", replicas=1)).ok()
    phase(kubectl, "j", "Completed")

    def events() -> str:
        return kubectl("describe", "pod", "j-worker-0").ok().partition("Events:")[2]

    wait_until("its events tell of it", lambda: "Successfully assigned" in events())
    assert "Scheduled" in kubectl("events").ok()
    assert "Scheduled" in kubectl("get", "events").ok()
    assert "Min Available" in kubectl("describe", "vcjob", "j").ok()


def test_selectors_and_all_namespaces(kubectl: Call) -> None:
    kubectl("create", "configmap", "x").ok()
    kubectl("create", "configmap", "y").ok()
    kubectl("label", "cm", "x", "team=red").ok()
    assert kubectl("get", "cm", "-l", "team=red", "-o", "name").ok() == "configmap/x\n"
    assert kubectl("get", "cm", "-l", "team!=red,team", "-o", "name").ok() == ""
    assert kubectl("get", "cm", "--field-selector", "metadata.name=y", "-o", "name").ok() == "configmap/y\n"
    assert kubectl("get", "cm", "-A", "--no-headers").ok().count("kube-root-ca.crt") >= 2
    assert "field label not supported" in kubectl("get", "pods", "--field-selector", "spec.nothing=1").fails()


def test_label_annotate_and_edit(kubectl: Call) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=1").ok()
    assert "labeled" in kubectl("label", "cm", "c", "a=b").ok()
    assert "already has a value" in kubectl("label", "cm", "c", "a=c").fails()
    assert "annotated" in kubectl("annotate", "cm", "c", "note=here").ok()
    edited = kubectl("edit", "cm", "c", env={"KUBE_EDITOR": "sed -i s/note:.here/note:\\ there/"})
    assert "configmap/c edited" in edited.ok()
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.metadata.annotations.note}").ok() == "there"


@pytest.mark.parametrize(
    ("kind", "patch", "value"),
    [
        ("merge", '{"data":{"a":"2"}}', "2"),
        ("json", '[{"op":"replace","path":"/data/a","value":"3"}]', "3"),
        ("strategic", '{"data":{"a":"4"}}', "4"),
    ],
)
def test_patch_of_every_type(kubectl: Call, kind: str, patch: str, value: str) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=1").ok()
    kubectl("patch", "cm", "c", "--type", kind, "-p", patch).ok()
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}").ok() == value


def test_custom_resources_refuse_strategic_patches(kubectl: Call) -> None:
    kubectl("create", "-f", "-", stdin=job(command="true")).ok()
    assert "strategic-merge-patch" in kubectl("patch", "vcjob", "j", "-p", '{"spec":{"maxRetry":4}}').fails()


def test_scale_of_a_kind_with_the_subresource(kubectl: Call) -> None:
    kubectl("create", "deployment", "d", "--image=none").ok()
    kubectl("scale", "deployment", "d", "--replicas=3").ok()
    assert kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}").ok() == "3"


def test_wait_for_deletion_and_condition(kubectl: Call) -> None:
    kubectl("create", "-f", "-", stdin=job(command="sleep 300", replicas=1)).ok()
    kubectl("wait", "pod/j-worker-0", "--for=create", "--timeout=80s").ok()
    kubectl("wait", "pod/j-worker-0", "--for=condition=Ready", "--timeout=60s").ok()
    kubectl("delete", "vcjob", "j", "--wait=false").ok()
    kubectl("wait", "pod/j-worker-0", "--for=delete", "--timeout=60s").ok()


@pytest.mark.parametrize("policy", ["background", "foreground"])
def test_delete_takes_the_pods_along(kubectl: Call, policy: str) -> None:
    kubectl("create", "-f", "-", stdin=job(command="sleep 300", replicas=1)).ok()
    phase(kubectl, "j", "Running")
    assert 'job.batch.volcano.sh "j" deleted' in kubectl("delete", "vcjob", "j", f"--cascade={policy}").ok()
    kubectl("wait", "pod/j-worker-0", "--for=delete", "--timeout=60s").ok()
    assert "not found" in kubectl("get", "vcjob", "j").fails()


def test_deleting_a_pod_that_is_replaced_returns(kubectl: Call) -> None:
    kubectl("create", "-f", "-", stdin=job(command="sleep 300", replicas=1)).ok()
    for _ in range(5):
        kubectl("wait", "pod/j-worker-0", "--for=create", "--timeout=60s").ok()
        kubectl("wait", "pod/j-worker-0", "--for=condition=Ready", "--timeout=60s").ok()
        kubectl("delete", "pod", "j-worker-0", "--timeout=60s").ok()


def test_delete_may_orphan(kubectl: Call) -> None:
    kubectl("create", "-f", "-", stdin=job(command="true", replicas=1)).ok()
    phase(kubectl, "j", "Completed")
    kubectl("delete", "vcjob", "j", "--cascade=orphan").ok()
    assert kubectl("get", "pod", "j-worker-0", "-o", "jsonpath={.metadata.ownerReferences}").ok() == ""


def test_dry_run_changes_nothing(kubectl: Call) -> None:
    assert "created (server dry run)" in kubectl("apply", "--dry-run=server", "-f", "-", stdin=CONFIGMAP).ok()
    assert "not found" in kubectl("get", "cm", "c").fails()


def test_strict_validation_names_the_field(kubectl: Call) -> None:
    wrong = job().replace("minAvailable: 2", "minAvailable: 2\n  minAvialable: 2")
    assert 'unknown field "spec.minAvialable"' in kubectl("apply", "--validate=strict", "-f", "-", stdin=wrong).fails()
    warned = kubectl("create", "--validate=warn", "-f", "-", stdin=wrong)
    assert "created" in warned.ok()
    assert "unknown field" in warned.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("replicas: 2", "replicas: -1"), "should be greater than or equal to 0"),
        (("minAvailable: 2", 'minAvailable: "two"'), "must be of type integer"),
        (("minAvailable: 2", "minAvailable: 3"), "minAvailable"),
        (("queue: default", "queue: nowhere"), "nowhere"),
        (("queue: default", "queue: default\n  plugins: {nonsense: []}"), "nonsense"),
    ],
)
def test_what_is_wrong_is_said_at_once(kubectl: Call, change: tuple[str, str], said: str) -> None:
    assert said in kubectl("create", "-f", "-", stdin=job().replace(*change, 1)).fails()


def test_auth_can_i(kubectl: Call) -> None:
    assert kubectl("auth", "can-i", "create", "vcjobs").ok() == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list").ok()
    assert kubectl("auth", "can-i", "get", "pods", "--as=somebody").out == "no\n"
    assert "somebody" in kubectl("auth", "whoami", "--as=somebody").ok()


def test_replace_needs_what_is_stored(kubectl: Call) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=1").ok()
    stale = kubectl("get", "cm", "c", "-o", "yaml").ok()
    kubectl("label", "cm", "c", "a=b").ok()
    assert "the object has been modified" in kubectl("replace", "-f", "-", stdin=stale).fails()


def test_a_command_that_does_not_exist_says_so(kubectl: Call) -> None:
    kubectl("create", "-f", "-", stdin=job(replicas=1).replace('["sh", "-c", "sleep 60"]', '["no-such-program"]')).ok()
    phase(kubectl, "j", "Failed")
    state = "{.status.containerStatuses[0].state.terminated"
    assert kubectl("get", "pod", "j-worker-0", "-o", f"jsonpath={state}.exitCode}}").ok() == "127"
    assert "no-such-program" in kubectl("get", "pod", "j-worker-0", "-o", f"jsonpath={state}.message}}").ok()


def test_an_image_without_a_command_says_what_to_do(kubectl: Call) -> None:
    body = job(replicas=1).replace('command: ["sh", "-c", "sleep 60"]', "tty: false")
    kubectl("create", "-f", "-", stdin=body).ok()
    waiting = "jsonpath={.status.containerStatuses[0].state.waiting.message}"
    kubectl("wait", "pod/j-worker-0", "--for=create", "--timeout=80s").ok()
    kubectl("wait", "pod/j-worker-0", f"--for={waiting}", "--timeout=80s").ok()
    assert "command" in kubectl("get", "pod", "j-worker-0", "-o", waiting).ok()
    kubectl("wait", "vcjob/j", "--for=jsonpath={.status.state.reason}=PodNotStarted", "--timeout=80s").ok()
    why = kubectl("get", "vcjob", "j", "-o", "jsonpath={.status.state.message}").ok()
    assert "container main of pod j-worker-0 can't start: CreateContainerConfigError: no command" in why


def test_run_starts_a_plain_pod(kubectl: Call) -> None:
    kubectl("run", "plain", "--image=busybox", "--restart=Never", "--command", "--", "sh", "-c", "echo plain").ok()
    kubectl("wait", "pod/plain", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=80s").ok()
    assert kubectl("logs", "plain").ok() == "plain\n"


def test_what_nothing_will_act_on_is_said_when_it_is_created(kubectl: Call) -> None:
    daemons = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: d}
spec:
  selector: {matchLabels: {a: d}}
  template: {metadata: {labels: {a: d}}, spec: {containers: [{name: main, image: busybox}]}}
"""
    made = kubectl("create", "-f", "-", stdin=daemons)
    assert "created" in made.ok()
    assert "Warning: the local server has no controller for DaemonSets" in made.err
    made = kubectl("create", "job", "k", "--image=busybox", "--", "true")
    assert "created" in made.ok()
    assert "Warning" not in made.err
    other = job().replace("  minAvailable: 2", "  minAvailable: 2\n  schedulerName: elsewhere")
    made = kubectl("create", "-f", "-", stdin=other)
    assert "created" in made.ok()
    assert "the local server has no scheduler 'elsewhere'" in made.err


def test_describe_node_finds_everything(kubectl: Call) -> None:
    described = kubectl("describe", "node", "local")
    assert "AcquireTime" in described.ok()
    assert "Failed" not in described.err
