"""`vcbatch lint`: what is wrong with a file, and in which line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.api.yaml_reader import YamlError
from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.positions import placed
from vcbatch.cli.lint.command import command

ROOT = Path(__file__).parents[3]

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
spec:
  queue: research
  minAvailable: 2
  tasks:
    - name: worker
      replicas: 2
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: train:1
              resources: {requests: {cpu: 1}}
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 1}
"""


CPU = "spec.tasks[0].template.spec.containers[0].resources.requests.cpu"


def lint(folder: Path, text: str, *arguments: str) -> Result:
    file = folder / "given.yaml"
    file.write_text(text)
    return CliRunner().invoke(command, ["-f", str(file), *arguments], catch_exceptions=False, standalone_mode=False)


def reported(folder: Path, text: str, *arguments: str) -> list[tuple[int, str, str]]:
    """Line, severity and field of each complaint."""
    done = lint(folder, text, "-o", "json", *arguments)
    return [(one["line"], one["severity"], one["field"]) for one in json.loads(done.stdout)]


def test_a_good_job_is_left_in_peace(tmp_path: Path) -> None:
    done = lint(tmp_path, JOB)
    assert (done.return_value, done.stdout) == (0, "")
    assert "1 object checked: 0 errors, 0 warnings" in done.stderr


def test_the_shipped_examples_are_good() -> None:
    files = [argument for file in sorted((ROOT / "examples").glob("*.yaml")) for argument in ("-f", str(file))]
    done = CliRunner().invoke(command, files, catch_exceptions=False, standalone_mode=False)
    assert (done.return_value, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ("name: train", "name: Train", 4, "metadata.name"),
        ("minAvailable: 2", "minAvailable: 3", 7, "spec.minAvailable"),
        ("replicas: 2", "replicas: two", 10, "spec.tasks[0].replicas"),
        ("restartPolicy: Never", "restartPolicy: Maybe", 13, "spec.tasks[0].template.spec.restartPolicy"),
        ("image: train:1", "imagee: train:1", 16, "spec.tasks[0].template.spec.containers[0].imagee"),
        ("queue: research", "queue: root", 6, "spec.queue"),
        ("queue: research", "priorityClassName: [1]", 6, "spec.priorityClassName"),
    ],
)
def test_a_fault_is_told_with_the_line_it_is_in(tmp_path: Path, old: str, new: str, line: int, field: str) -> None:
    assert (line, "error", field) in reported(tmp_path, JOB.replace(old, new))
    assert lint(tmp_path, JOB.replace(old, new)).return_value == 1


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("replicas: -1", ["spec.tasks[0].replicas"]),
        ("minAvailable: -1", ["spec.tasks[0].minAvailable"]),
        ("replicas: 0", []),
        ("policies: []", []),  # without replicas
    ],
)
def test_what_follows_from_a_fault_is_no_fault_of_its_own(tmp_path: Path, task: str, fields: list[str]) -> None:
    """The gang's minimum is the sum of its tasks' where nobody has written one."""
    text = JOB.replace("  minAvailable: 2\n", "").replace("replicas: 2", task)
    errors = [(line, field) for line, severity, field in reported(tmp_path, text) if severity == "error"]
    assert errors == [(9, field) for field in fields]


def test_faults_of_the_schema_and_of_the_rules_are_told_together_and_each_once(tmp_path: Path) -> None:
    both = JOB.replace("minAvailable: 2", "minAvailable: 3").replace("cpu: 1", "cpu: 1x")
    cpu = "spec.tasks[0].template.spec.containers[0].resources.requests.cpu"
    assert reported(tmp_path, both) == [(7, "error", "spec.minAvailable"), (17, "error", cpu)]


def test_a_misspelt_field_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    done = lint(tmp_path, JOB.replace("minAvailable", "minAvailble"))
    said = "given.yaml:7:3: error: Job/train: unknown field 'spec.minAvailble'; did you mean 'minAvailable'?"
    assert f"{tmp_path}/{said}" in done.stdout.splitlines()


def test_a_missing_field_is_told_where_it_should_be(tmp_path: Path) -> None:
    done = lint(tmp_path, JOB.replace("              image: train:1\n", ""))
    assert "given.yaml:15:15: error" in done.stdout
    assert "image" in done.stdout


def test_all_files_are_one_world(tmp_path: Path) -> None:
    parent = QUEUE + "---\n" + QUEUE.replace("research}", "below}").replace("weight: 1", "parent: research")
    assert reported(tmp_path, JOB + "---\n" + parent) == [(6, "error", "spec.queue")]  # no leaf of the tree
    assert reported(tmp_path, JOB + "---\n" + QUEUE, "--closed-world") == []


def test_what_is_not_in_the_files_exists_unless_the_world_is_closed(tmp_path: Path) -> None:
    text = JOB.replace("  queue: research", "  priorityClassName: high\n  queue: research")
    assert reported(tmp_path, text) == []
    assert {field for _, _, field in reported(tmp_path, text, "--closed-world")} == {"spec.queue"}
    without_queue = text.replace("  queue: research\n", "")
    assert reported(tmp_path, without_queue, "--closed-world") == [(6, "warning", "spec.priorityClassName")]


def test_a_queue_below_one_that_is_elsewhere(tmp_path: Path) -> None:
    text = QUEUE.replace("weight: 1", "parent: team, guarantee: {resource: {cpu: 4}}, deserved: {cpu: 8}")
    assert reported(tmp_path, text) == []
    assert [field for _, _, field in reported(tmp_path, text, "--closed-world")] == ["spec.parent"]


def test_the_same_object_twice(tmp_path: Path) -> None:
    assert reported(tmp_path, f"{JOB}---\n{JOB}") == [(22, "error", "metadata.name")]
    generated = JOB.replace("name: train\n", "generateName: train-\n")
    assert reported(tmp_path, f"{generated}---\n{generated}") == []


def test_a_key_written_twice(tmp_path: Path) -> None:
    text = JOB.replace("      replicas: 2\n", "      replicas: 9\n      replicas: 2\n")
    assert reported(tmp_path, text) == [(11, "error", "spec.tasks[0].replicas")]
    said = "error: Job/train: duplicate field 'spec.tasks[0].replicas', written first in line 10"
    assert lint(tmp_path, text).stdout == f"{tmp_path}/given.yaml:11:7: {said}\n"


def test_what_an_alias_stands_for_is_told_once(tmp_path: Path) -> None:
    text = QUEUE.replace("{weight: 1}", "\n  capability: &same {cpu: 1, cpu: 2}\n  deserved: *same")
    assert reported(tmp_path, text) == [(5, "error", "spec.capability.cpu")]


def test_a_list_that_has_its_items_twice_is_an_error(tmp_path: Path) -> None:
    item = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: NAME}}"
    text = f"kind: List\nitems:\n- {item.replace('NAME', 'a')}\nitems:\n- {item.replace('NAME', 'b')}\n"
    assert lint(tmp_path, text).stdout == f"{tmp_path}/given.yaml:4:1: error: Queue/b: duplicate field 'items'\n"


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "---\n---\n", "[]\n"])
def test_a_file_without_objects_is_an_error(tmp_path: Path, text: str) -> None:
    done = lint(tmp_path, text)
    assert (done.return_value, done.stdout) == (
        1,
        f"{tmp_path}/given.yaml:1:1: error: no objects: must contain at least one\n",
    )
    assert reported(tmp_path, text) == [(1, "error", "")]
    assert reported(tmp_path, QUEUE, "-f", str(tmp_path / "given.yaml")) != []  # the same twice


def test_a_file_without_objects_beside_others_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    assert reported(tmp_path, QUEUE, "-f", str(tmp_path / "empty.yaml")) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("replicas: 2", "replicas: two", 'spec.tasks[0].replicas: must be an integer, got "two"'),
        ("replicas: 2", "replicas: 5000000000", "spec.tasks[0].replicas: must be a 32-bit integer, got 5000000000"),
        ("queue: research", "queue: no", "spec.queue: must be a string, got false"),
        (
            "cpu: 1",
            "cpu: 1x",
            f'{CPU}: must be a quantity such as 500m or 4Gi, got "1x"',
        ),
        ("tasks:\n", "plugins: {env: {}}\n  tasks:\n", "spec.plugins.env: must be a list, got {}"),
        ("  name: train\n", "  name: 7\n", "metadata.name: must be a string, got 7"),
        ("  name: train\n", "  name: a\n  labels: {a: 1}\n", "metadata.labels[a]: must be a string, got 1"),
        (
            "  name: train\n",
            "  name: a\n  finalizers: [1]\n",
            "metadata.finalizers: must be a list of strings, got [1]",
        ),
        (
            "  name: train\n",
            "  name: a\n  creationTimestamp: today\n",
            'metadata.creationTimestamp: must be a time such as 2026-01-01T00:00:00Z, got "today"',
        ),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_what_may_be_there(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    lines = [line.split(": error: ")[1] for line in lint(tmp_path, JOB.replace(old, new)).stdout.splitlines()]
    assert [line.partition(": ")[2] for line in lines] == [said]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ("labels: {a: b c}", "metadata.labels"),
        ("annotations: {a b: c}", "metadata.annotations"),
        ("finalizers: [a b]", "metadata.finalizers"),
        ("ownerReferences: [{apiVersion: v1, kind: Pod, name: p}]", "metadata.ownerReferences.uid"),
        ("namespace: A_b", "metadata.namespace"),
    ],
)
def test_metadata_that_a_server_refuses(tmp_path: Path, metadata: str, field: str) -> None:
    assert reported(tmp_path, JOB.replace("  name: train\n", f"  name: train\n  {metadata}\n")) == [(5, "error", field)]


def test_the_rules_of_the_definition_are_asked(tmp_path: Path) -> None:
    text = """\
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack}
spec: {tier: 1, members: [{type: Node, selector: {}}]}
"""
    assert reported(tmp_path, text) == [(4, "error", "spec.members[0].selector")]


def test_faults_that_no_misfit_causes_are_told_with_it_and_others_are_not(tmp_path: Path) -> None:
    """Admission isn't asked about an object that doesn't fit the schema."""
    two = JOB.replace("queue: research", "maxRetry: often").replace("minAvailable: 2", "minAvailable: 3")
    assert reported(tmp_path, two) == [(6, "error", "spec.maxRetry"), (7, "error", "spec.minAvailable")]
    caused = JOB.replace("replicas: 2", "replicas: two").replace("minAvailable: 2", "minAvailable: 3")
    assert reported(tmp_path, caused) == [(10, "error", "spec.tasks[0].replicas")]


def test_warnings_are_errors_when_asked(tmp_path: Path) -> None:
    bare = JOB.replace("              resources: {requests: {cpu: 1}}\n", "")
    assert reported(tmp_path, bare) == [(15, "warning", "spec.tasks[0].template.spec.containers[0]")]
    assert lint(tmp_path, bare).return_value == 0
    assert lint(tmp_path, bare, "--strict").return_value == 1


def test_other_kinds_are_counted_and_wrong_versions_of_ours_refused(tmp_path: Path) -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    done = lint(tmp_path, other)
    assert done.return_value == 0
    assert "1 ConfigMap" in done.stderr
    done = lint(tmp_path, JOB.replace("v1alpha1", "v1"))
    assert "given.yaml:1:1: error: Job/train: unknown kind Job in batch.volcano.sh/v1: Job is in" in done.stdout
    assert reported(tmp_path, "kind: Job\n") == [(1, "error", "apiVersion")]
    assert reported(tmp_path, "- 1\n- 2\n") == [(1, "error", ""), (2, "error", "")]


def test_a_list_is_taken_apart(tmp_path: Path) -> None:
    items = "".join(f"  {line}\n" if line else "\n" for line in JOB.replace("name: train", "name: Train").splitlines())
    text = "apiVersion: v1\nkind: List\nitems:\n- " + items[2:]
    assert reported(tmp_path, text) == [(7, "error", "metadata.name")]


def test_what_is_no_yaml_is_told_with_its_line_and_the_rest_is_checked(tmp_path: Path) -> None:
    text = JOB.replace("name: train", "name: Train") + "---\na: [1\nb: 2\n"
    assert [line for line, _, _ in reported(tmp_path, text)] == [4, 20]


def test_json_with_tabs_is_read(tmp_path: Path) -> None:
    text = '{\n\t"apiVersion": "batch.volcano.sh/v1alpha1",\n\t"kind": "Job",\n\t"metadata": {"name": "A"}\n}\n'
    assert (4, "error", "metadata.name") in reported(tmp_path, text)


def test_annotations_of_a_workflow(tmp_path: Path) -> None:
    done = lint(tmp_path, JOB.replace("name: train", "name: Train"), "-o", "github")
    assert done.stdout.startswith(f"::error file={tmp_path}/given.yaml,line=4,col=3::Job/Train: metadata.name: ")


def test_a_folder_without_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="no manifests"):
        CliRunner().invoke(command, ["-f", str(tmp_path)], catch_exceptions=False, standalone_mode=False)


def test_aliases_that_stand_for_too_much_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(YamlError, match="aliases"):
        list(placed("\n".join(lines)))


_KEYS = st.text("abc./-", min_size=1, max_size=4)
_VALUES = st.recursive(
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.text("xyz", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4))
def test_every_field_has_the_line_it_is_written_in(value: dict[str, object]) -> None:
    """Written with one key or item a line, the line of a path is where its key stands."""
    text = json.dumps(value, indent=1)
    (document,) = placed(text)
    assert document.value == value
    lines = text.splitlines()
    for key in value:
        assert json.dumps(key) in lines[document.place_of(f"[{key}]").line - 1]
    assert 1 <= document.place_of("no.such.path").line <= len(lines)


@pytest.mark.parametrize(
    ("api_version", "kind", "said"),
    [
        ("batch.volcano.sh/v1alpha1", "job", "did you mean Job in batch.volcano.sh/v1alpha1?"),
        ("batch.volcno.sh/v1alpha1", "Job", "did you mean group batch.volcano.sh?"),
        ("batch.volcano.sh/v1beta1", "Job", "Job is in batch.volcano.sh/v1alpha1 or batch/v1"),
        ("batch.volcano.sh", "Job", "Job is in batch.volcano.sh/v1alpha1 or batch/v1"),
        ("scheduling.volcano.sh/v1beta1", "Queues", "did you mean Queue in scheduling.volcano.sh/v1beta1?"),
        ("apps/v1", "Deploymnet", "did you mean Deployment in apps/v1?"),
        ("app/v1", "Deployment", "did you mean group apps?"),
        ("v1", "Deployment", "Deployment is in apps/v1"),
        ("vv1", "Pod", "Pod is in v1"),
        ("a/b/c", "Pod", "apiVersion must be VERSION or GROUP/VERSION, got 'a/b/c'"),
        ("7", "Job", "apiVersion must be a string, got 7"),
        ("v1", "[1]", "kind must be a string, got [1]"),
        ("v1", "''", "kind is required"),
    ],
)
def test_kinds_that_there_can_not_be_are_errors(tmp_path: Path, api_version: str, kind: str, said: str) -> None:
    done = lint(tmp_path, f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    assert done.return_value == 1
    assert said in done.stdout and "given.yaml:" in done.stdout


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("kubeflow.org/v1", "PyTorchJob"),
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshot"),
        ("networking.gke.io/v1", "ManagedCertificate"),
        ("training.volcano.sh/v1alpha1", "HyperJob"),
        ("apps/v1", "Deployment"),
        ("v1", "SomethingNew"),
    ],
)
def test_kinds_of_others_are_not_checked(tmp_path: Path, api_version: str, kind: str) -> None:
    done = lint(tmp_path, f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{x: 1}}\n")
    assert (done.return_value, done.stdout) == (0, "")
    assert f"skipped: 1 {kind}" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ("  name: train\n", "  name: 7\n", 4, "metadata.name"),
        ("  name: train\n", "  name: train\n  labels: {a: 1}\n", 5, "metadata.labels"),
        ("  name: train\n", "  name: train\n  generation: many\n", 5, "metadata.generation"),
        ("metadata:\n  name: train\n", "metadata: [1]\n", 3, "metadata"),
        ("\nspec:\n", "\nspec:\n  1: []\n", 6, "spec.1"),
    ],
)
def test_odd_values_and_keys_are_errors_with_their_lines(
    tmp_path: Path, old: str, new: str, line: int, field: str
) -> None:
    assert (line, "error", field) in reported(tmp_path, JOB.replace(old, new))


def test_an_empty_key_and_numbers_that_json_has_not_end_the_file(tmp_path: Path) -> None:
    for text in ("null: 1", "weight: .nan", "? [a]\n: 1"):
        done = lint(tmp_path, f"{QUEUE}---\na: 1\n{text}\n")
        assert (done.return_value, done.stdout.count("\n")) == (1, 1)
        assert "not valid YAML: " in done.stdout
