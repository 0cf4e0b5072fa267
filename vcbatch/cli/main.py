"""The command `vcbatch`. Each subcommand is imported when it is called, so that none pays for the others."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from vcbatch._version import __version__
from vcbatch.cli.lazy import Commands, LazyGroup
from vcbatch.cli.output import CliError, complain

_COMMANDS: Commands = {
    "up": ("vcbatch.cli.up", "Start everything on this machine: no cluster, no containers, no root."),
    "down": ("vcbatch.cli.down", "Stop what `vcbatch up` started, and every process of its pods."),
    "status": ("vcbatch.cli.status", "Show the local server, its nodes, queues and jobs."),
    "run": ("vcbatch.cli.run.command", "Run a program as a job, and end with its exit code."),
    "job": ("vcbatch.cli.resources.job", "List, explain, follow, suspend, move and cancel jobs."),
    "wait": ("vcbatch.cli.wait.command", "Wait until jobs and other objects are as asked."),
    "apply": ("vcbatch.cli.apply.command", "Make objects as files say, after showing what that changes."),
    "delete": ("vcbatch.cli.apply.delete", "Delete the objects that files describe."),
    "queue": ("vcbatch.cli.resources.queue", "Show and steer queues."),
    "jobflow": ("vcbatch.cli.resources.flow", "Show and steer flows of jobs."),
    "jobtemplate": ("vcbatch.cli.resources.template", "Show the templates of flows."),
    "cronjob": ("vcbatch.cli.resources.cron", "Show and steer jobs on a schedule."),
    "pod": ("vcbatch.cli.resources.pod", "Show the pods of jobs."),
    "hypernode": ("vcbatch.cli.resources.hypernode", "Show domains of the network."),
    "cluster": ("vcbatch.cli.resources.cluster", "Show nodes, what is asked for of them, and how jobs stand."),
    "doctor": ("vcbatch.cli.resources.doctor", "Check that everything works, and say what to do."),
    "lint": ("vcbatch.cli.lint.command", "Check manifests as a server would, without one."),
    "simulate": ("vcbatch.cli.simulate", "Say what the scheduler would do with given objects."),
    "snapshot": ("vcbatch.cli.snapshot", "Save what the scheduler sees of a cluster."),
    "replay": ("vcbatch.cli.replay", "Do again what the scheduler did, or would do in a changed cluster."),
    "config": ("vcbatch.cli.config", "Check a scheduling policy, or show what it comes to."),
    "controllers": ("vcbatch.cli.controllers", "Run the controllers on a cluster."),
    "scheduler": ("vcbatch.cli.scheduler", "Run the gang scheduler on a cluster."),
    "webhooks": ("vcbatch.cli.webhooks", "Run the admission service of a cluster."),
    "install": ("vcbatch.cli.install.command", "Install or upgrade vcbatch on a cluster, without Helm."),
    "uninstall": ("vcbatch.cli.install.command:uninstall", "Remove what `vcbatch install` made; jobs stay."),
    "migrate": ("vcbatch.cli.migrate.command", "Check a cluster with Volcano, and print the way to vcbatch and back."),
    "crds": ("vcbatch.cli.crds", "Print or write the CustomResourceDefinitions."),
    "policies": ("vcbatch.cli.policies", "Print or write admission as policies, for clusters without webhooks."),
    "completion": ("vcbatch.cli.completion.command", "Print a script for completion in bash, zsh or fish."),
}

_EXTRAS = {
    "up": "local",
    "down": "local",
    "controllers": "controllers",
    "scheduler": "scheduler",
    "simulate": "scheduler",
    "config": "scheduler",
    "snapshot": "scheduler",
    "lint": "local",
    "replay": "scheduler",
    "webhooks": "webhooks",
}
"""What a command needs beyond the plain package, which has just the client side."""


class _ReaderGone(Exception):
    """Nobody reads the output any more."""


_COMPONENTS = frozenset({"controllers", "scheduler", "webhooks"})
"""What runs until a signal ends it, which is then no failure."""

_SECTIONS = {
    "up": "On this machine",
    "run": "Jobs",
    "queue": "Queues, flows, schedules, nodes",
    "doctor": "Check and foresee",
    "controllers": "Run a cluster",
    "completion": "Others",
}
"""Titles in the list of commands, by the first command below each."""


class _Root(LazyGroup):
    def meant_by(self, word: str, ctx: click.Context) -> str:
        """Also what is a command of jobs: people leave `job` away."""
        jobs = self.get_command(ctx, "job")
        if isinstance(jobs, LazyGroup) and word in jobs.list_commands(ctx):
            return f"job {word}"
        return super().meant_by(word, ctx)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None  # click would take it for an error of its own, with exit code 1


@click.group(
    cls=_Root,
    commands_at=_COMMANDS,
    sections=_SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="vcbatch %(version)s")
def cli() -> None:
    """Gang-scheduled batch jobs for machine-learning training, with Volcano's API.

    Start with `vcbatch up`, then use `vcbatch run`, or kubectl.
    """


def _called() -> str:
    """How a person typed it: kubectl finds its plugins by the names of programs."""
    return "kubectl vcbatch" if os.path.basename(sys.argv[0]).startswith("kubectl-") else "vcbatch"  # noqa: PTH119


def _end_as_first_process() -> None:
    """Let SIGTERM and SIGINT end process 1 of a container from its first moment on: the kernel ignores signals that
    process 1 has no handler for, and a component's own are there only once it has reached its API server."""
    if os.getpid() != 1:
        return
    if sys.argv[1:2] and sys.argv[1] in _COMPONENTS:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))


def main() -> NoReturn:
    """Exit code 0 for success, 1 for an error, 2 for wrong usage, 130 after Ctrl-C."""
    _end_as_first_process()
    try:
        sys.exit(cli.main(prog_name=_called(), standalone_mode=False) or 0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except CliError as error:
        complain(error)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        command = next((argument for argument in sys.argv[1:] if argument in _EXTRAS), "")
        if not command or (error.name or "").startswith("vcbatch"):
            raise
        extra = f"vcbatch[{_EXTRAS[command]}]"
        hint = f"Install it with: pip install '{extra}'"
        complain(CliError(f"`vcbatch {command}` needs {error.name}, which {extra} brings", hint=hint))
        sys.exit(1)
    except _ReaderGone:
        sys.stderr.close()  # the reader has gone, and so has anybody to complain to
        sys.exit(141)
