"""The commands of `vcbatch`: module, summary, and the extra of the package that each one needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """One command. Its module is imported when it is called."""

    at: str
    """`module` or `module:attribute` of the click command; the default attribute is `command`."""
    summary: str
    """One line for the list of commands."""
    extra: str = ""
    """The extra that it needs, a name of `[project.optional-dependencies]`; its `--help` works without it."""
    until_signal: bool = False
    """It runs until a signal ends it; that isn't an error."""


SECTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Local server": {
        "up": Entry("vcbatch.cli.local.up", "Start a local server, without a cluster, containers or root."),
        "down": Entry("vcbatch.cli.local.down", "Stop the local server and its pods."),
        "status": Entry("vcbatch.cli.local.status", "Show the status of the local server."),
    },
    "Jobs": {
        "run": Entry("vcbatch.cli.run.command", "Run a program as a job and exit with its exit code."),
        "job": Entry("vcbatch.cli.resources.job", "Manage jobs."),
        "shell": Entry("vcbatch.cli.exec.shell", "Open a shell in a running pod of a job."),
        "wait": Entry("vcbatch.cli.wait.command", "Wait for a condition on jobs or other objects."),
        "apply": Entry("vcbatch.cli.apply.command", "Apply manifests after showing a diff."),
        "delete": Entry("vcbatch.cli.apply.delete", "Delete the objects in manifests."),
    },
    "Short forms": {
        "ps": Entry("vcbatch.cli.resources.job.listing:listing", "List jobs (job list)."),
        "logs": Entry("vcbatch.cli.logs.command", "Print the logs of a job's pods (job logs)."),
        "cancel": Entry("vcbatch.cli.run.cancel", "Cancel jobs, keeping their records (job cancel)."),
        "submit": Entry("vcbatch.cli.run.submit", "Submit a program or files, and exit."),
        "top": Entry("vcbatch.cli.resources.job.top", "Show resource requests and usage of jobs (job top)."),
    },
    "Queues, flows, schedules and nodes": {
        "queue": Entry("vcbatch.cli.resources.queue", "Manage queues."),
        "jobflow": Entry("vcbatch.cli.resources.flow", "Manage job flows."),
        "jobtemplate": Entry("vcbatch.cli.resources.template", "Show job templates."),
        "cronjob": Entry("vcbatch.cli.resources.cron", "Manage cron jobs."),
        "pod": Entry("vcbatch.cli.resources.pod", "Show the pods of jobs."),
        "hypernode": Entry("vcbatch.cli.resources.hypernode", "Inspect network topology (HyperNodes)."),
        "cluster": Entry("vcbatch.cli.resources.cluster", "Show nodes, requested resources and job counts."),
        "accounting": Entry("vcbatch.cli.accounting.command", "Show past jobs, and usage by user, queue or day."),
    },
    "Validate and simulate": {
        "doctor": Entry("vcbatch.cli.resources.doctor", "Diagnose the installation and suggest fixes."),
        "lint": Entry("vcbatch.cli.lint.command", "Validate manifests offline."),
        "simulate": Entry("vcbatch.cli.whatif.simulate", "Simulate scheduling of the objects in files."),
        "snapshot": Entry("vcbatch.cli.whatif.snapshot", "Save a snapshot of the scheduler's input."),
        "replay": Entry(
            "vcbatch.cli.whatif.replay",
            "Replay recorded scheduling cycles, or run a what-if simulation.",
        ),
        "config": Entry(
            "vcbatch.cli.whatif.config",
            "Validate a scheduler configuration, or print the effective one.",
        ),
    },
    "Operate a cluster": {
        "controllers": Entry(
            "vcbatch.cli.components.controllers",
            "Run the controllers on a cluster.",
            until_signal=True,
        ),
        "scheduler": Entry("vcbatch.cli.components.scheduler", "Run the scheduler on a cluster.", until_signal=True),
        "webhooks": Entry(
            "vcbatch.cli.components.webhooks",
            "Run the admission webhooks on a cluster.",
            extra="webhooks",
            until_signal=True,
        ),
        "install": Entry("vcbatch.cli.install.command", "Install or upgrade vcbatch on a cluster, without Helm."),
        "uninstall": Entry("vcbatch.cli.install.command:uninstall", "Uninstall vcbatch; CRDs and jobs are kept."),
        "migrate": Entry("vcbatch.cli.migrate.command", "Plan a migration from Volcano, or back."),
        "crds": Entry("vcbatch.cli.install.crds", "Print or write the CustomResourceDefinitions."),
        "policies": Entry(
            "vcbatch.cli.install.policies", "Print or write admission policies, for use without webhooks."
        ),
    },
    "Other commands": {
        "examples": Entry("vcbatch.cli.examples.command", "List the example jobs, or print one."),
        "vcctl": Entry("vcbatch.cli.vcctl.command", "Run Volcano's command line, or install its programs."),
        "completion": Entry("vcbatch.cli.completion.command", "Install shell completion (bash, zsh or fish)."),
    },
}
"""Section title -> name -> command, in the order of the list of commands."""

COMMANDS: Final[Mapping[str, Entry]] = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
