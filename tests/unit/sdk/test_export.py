"""Which variables of a shell its jobs get."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vcbatch.sdk.export import Export, InvalidExport, store, with_environment

USERS = {
    "PATH": "/venv/bin:/usr/bin", "VIRTUAL_ENV": "/venv", "CONDA_PREFIX": "/conda", "PYTHONPATH": "src",
    "HF_TOKEN": "secret", "WANDB_MODE": "offline", "OMP_NUM_THREADS": "4", "NCCL_DEBUG": "INFO", "CUDA_HOME": "/cuda",
    "HTTPS_PROXY": "http://me:secret@proxy", "KUBECONFIG": "/k", "EMPTY": "", "BASH_FUNC_module%%": "() { :; }",
}  # fmt: skip
OUTER = {
    "SLURM_JOB_ID": "1", "SLURM_PROCID": "3", "SBATCH_EXPORT": "NONE", "TORCHELASTIC_RUN_ID": "x", "PET_NNODES": "4",
    "MASTER_ADDR": "outer", "MASTER_PORT": "1", "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TF_CONFIG": "{}",
    "OMPI_COMM_WORLD_RANK": "0", "PMI_RANK": "0", "VC_TASK_INDEX": "5", "VK_TASK_INDEX": "5", "VCBATCH_COMPLETE": "x",
    "CUDA_VISIBLE_DEVICES": "0", "NVIDIA_VISIBLE_DEVICES": "all", "HOSTNAME": "login", "PWD": "/home", "SHLVL": "2",
    "NSS_WRAPPER_HOSTS": "/hosts", "KUBERNETES_SERVICE_HOST": "10.0.0.1", "NOTIFY_SOCKET": "/run/x",
}  # fmt: skip


def passed(text: str, environ: dict[str, str]) -> dict[str, str]:
    return dict(Export.parse(text, environ).environment(environ, umask=0o022).variables)


def test_all_is_everything_but_what_belongs_to_an_outer_job_or_to_one_container() -> None:
    assert passed("ALL", USERS | OUTER) == USERS
    assert Export.parse("ALL", {}).environment({}, umask=0o022).complete


def test_none_and_lists_add_to_what_the_server_passes() -> None:
    assert passed("NONE", USERS) == {}
    assert passed("HF_TOKEN,A=b=c,B=", USERS) == {"HF_TOKEN": "secret", "A": "b=c", "B": ""}
    assert not Export.parse("NONE", {}).environment({}, umask=0o022).complete
    assert not Export.parse("A=1", {}).environment({}, umask=0o022).complete


def test_what_is_named_is_passed_whatever_it_is() -> None:
    assert passed("ALL,RANK,PATH=/bin", USERS | OUTER) == {**USERS, "RANK": "3", "PATH": "/bin"}


@pytest.mark.parametrize("text", ["", "ALL,", "A=1,,B=2", "NONE,A=1", "=x", "MISSING"])
def test_what_is_not_a_list_or_not_set_is_an_error(text: str) -> None:
    with pytest.raises(InvalidExport):
        Export.parse(text, USERS)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("/lib/libjemalloc.so", "/lib/libjemalloc.so"),
        ("/a/libnss_wrapper.so /lib/libjemalloc.so", "/lib/libjemalloc.so"),
        ("/a/libnss_wrapper.so:/b/x.so:/c/y.so", "/b/x.so:/c/y.so"),
        ("/a/libnss_wrapper.so.0", None),
    ],
)
def test_a_preloaded_library_is_passed_but_not_the_one_of_the_kubelet(given: str, kept: str | None) -> None:
    assert passed("ALL", {"LD_PRELOAD": given}).get("LD_PRELOAD") == kept


def test_a_job_has_only_the_id_and_keeps_its_own_annotations() -> None:
    job: dict[str, Any] = {
        "metadata": {"name": "a", "annotations": {"x": "y"}},
        "spec": {"queue": "q", "tasks": [{"name": "t", "template": {"spec": {"containers": []}}}]},
    }
    made = with_environment(job, "0123")
    assert made["metadata"] == {"name": "a", "annotations": {"x": "y", "vcbatch.dev/environment": "0123"}}
    template = made["spec"]["tasks"][0]["template"]
    assert template == {
        "metadata": {"annotations": {"vcbatch.dev/environment": "0123"}},
        "spec": {"containers": []},
    }
    assert "annotations" not in job["spec"]["tasks"][0]["template"].get("metadata", {})


def test_the_umask_of_the_process_is_stored_and_not_changed(tmp_path: Path) -> None:
    from vcbatch.local.environments import Environments

    tmp_path.chmod(0o700)
    before = os.umask(0o027)
    try:
        number = store(Export(everything=False), state_dir=tmp_path, namespace="default")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    environments = Environments.of(tmp_path)
    environments.claim(number, namespace="default", job="uid")
    assert environments.read(number, namespace="default", job="uid").umask == 0o027
