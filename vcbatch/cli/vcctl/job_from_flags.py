"""Jobs for submission, from flags or from a file."""

from __future__ import annotations

import os
from pathlib import Path

from vcbatch.api import names
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.output import CliError
from vcbatch.cli.vcctl.access import required
from vcbatch.cli.vcctl.commands import IMAGE, NAMESPACE
from vcbatch.cli.vcctl.flags import Given
from vcbatch.interfaces.api import Json


def from_flags(given: Given) -> Json:
    """A job of one task. Raises `CliError`."""
    return _job(given, image=given.text("image"), namespace=given.text("namespace"), scheduler=given.text("scheduler"))


def from_words(given: Given) -> Json:
    """The job for `vsub`, whose defaults come from the environment, and which takes a command. Raises `CliError`."""
    job = _job(
        given,
        image=_chosen(given, "image", names.ENV_DEFAULT_IMAGE, IMAGE),
        namespace=_chosen(given, "namespace", names.ENV_DEFAULT_JOB_NAMESPACE, NAMESPACE),
        scheduler=_chosen(given, "scheduler", names.ENV_SCHEDULER, names.DEFAULT_SCHEDULER),
    )
    command = _words(given.text("command"))
    if command:
        job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = command
    return job


def _chosen(given: Given, flag: str, variable: str, otherwise: str) -> str:
    return given.text(flag) if flag in given.named else os.environ.get(variable) or otherwise


def _words(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command, comments=True)
    except ValueError as error:
        unclosed = "quotation" in str(error)
        raise CliError(
            "EOF found when expecting closing quote" if unclosed else "EOF found after escape character",
            hint=f"--command is split into words as a shell does it: {command}",
        ) from None


def _job(given: Given, *, image: str, namespace: str, scheduler: str) -> Json:
    name = required(given, "name", "job name cannot be left blank")
    resources = {key: _quantities(given.text(key)) for key in ("requests", "limits")}
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {key: quantities for key, quantities in resources.items() if quantities},
    }
    template = {
        "metadata": {"name": name, "labels": {names.CLI_JOB: name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "minAvailable": given.number("min"),
            "schedulerName": scheduler,
            "tasks": [{"replicas": given.number("replicas"), "template": template}],
        },
    }


def _quantities(text: str) -> dict[str, str]:
    """`cpu=1,memory=1Gi` as a mapping of resources."""
    found: dict[str, str] = {}
    for statement in text.split(",") if text else ():
        resource, equals, quantity = statement.partition("=")
        if not equals or "=" in quantity:
            raise CliError(f"invalid argument syntax {statement}, expected <resource>=<value>")
        try:
            found[resource] = str(parse_quantity(quantity))
        except MalformedQuantity as error:
            raise CliError(f"{resource}: {error}", hint="Amounts are written as 500m, 2, 100Mi or 1.5Gi.") from None
    return found


def from_file(given: Given) -> Json:
    """The only job of the file, in the namespace of the manifest or of the flag. Raises `CliError`."""
    from vcbatch.cli.files.documents import documents

    file = given.text("filename")
    found = [dict(document) for document in documents(Path(file), letters=True, lenient=True)]
    if len(found) != 1:
        hint = f"`kubectl apply -f {file}` takes them all." if found else ""
        raise CliError(f"{file} has {len(found)} objects, and `job run` takes one job", hint=hint)
    job = found[0]
    version, kind = job.setdefault("apiVersion", JOBS.api_version), job.setdefault("kind", JOBS.kind)
    if (version, kind) != (JOBS.api_version, JOBS.kind):
        raise CliError(f"{file}: {kind} of {version} is no job: want kind {JOBS.kind} of {JOBS.api_version}")
    metadata = job.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise CliError(f"{file}: metadata must be a mapping")
    asked, own = given.text("namespace"), metadata.get("namespace")
    if own and "namespace" in given.named and own != asked:
        raise CliError(
            "the namespace of the provided object does not match the namespace sent on the request",
            hint=f"{file} names {own!r}, --namespace {asked!r}; leave one of them out.",
        )
    metadata["namespace"] = own or asked
    return job
