"""The command `vcbatch`. Each subcommand is imported when it is called, so that none pays for the others."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from vcbatch._version import __version__
from vcbatch.cli.base.lazy import Commands, LazyGroup
from vcbatch.cli.base.output import CliError, complain

_COMMANDS: Commands = {
    "up": ("vcbatch.cli.local.up", "Start a local server, without a cluster, containers or root."),
    "down": ("vcbatch.cli.local.down", "Stop the local server and its pods."),
    "status": ("vcbatch.cli.local.status", "Show the status of the local server."),
    "run": ("vcbatch.cli.run.command", "Run a program as a job and exit with its exit code."),
    "job": ("vcbatch.cli.resources.job", "Manage jobs."),
    "wait": ("vcbatch.cli.wait.command", "Wait for a condition on jobs or other objects."),
    "apply": ("vcbatch.cli.apply.command", "Apply manifests after showing a diff."),
    "delete": ("vcbatch.cli.apply.delete", "Delete the objects in manifests."),
    "queue": ("vcbatch.cli.resources.queue", "Manage queues."),
    "jobflow": ("vcbatch.cli.resources.flow", "Manage job flows."),
    "jobtemplate": ("vcbatch.cli.resources.template", "Show job templates."),
    "cronjob": ("vcbatch.cli.resources.cron", "Manage cron jobs."),
    "pod": ("vcbatch.cli.resources.pod", "Show the pods of jobs."),
    "hypernode": ("vcbatch.cli.resources.hypernode", "Inspect network topology (HyperNodes)."),
    "cluster": ("vcbatch.cli.resources.cluster", "Show nodes, requested resources and job counts."),
    "doctor": ("vcbatch.cli.resources.doctor", "Diagnose the installation and suggest fixes."),
    "lint": ("vcbatch.cli.lint.command", "Validate manifests offline."),
    "simulate": ("vcbatch.cli.whatif.simulate", "Simulate scheduling of the objects in files."),
    "snapshot": ("vcbatch.cli.whatif.snapshot", "Save a snapshot of the scheduler's input."),
    "replay": ("vcbatch.cli.whatif.replay", "Replay recorded scheduling cycles, or run a what-if simulation."),
    "config": ("vcbatch.cli.whatif.config", "Validate a scheduler configuration, or print the effective one."),
    "controllers": ("vcbatch.cli.components.controllers", "Run the controllers on a cluster."),
    "scheduler": ("vcbatch.cli.components.scheduler", "Run the scheduler on a cluster."),
    "webhooks": ("vcbatch.cli.components.webhooks", "Run the admission webhooks on a cluster."),
    "install": ("vcbatch.cli.install.command", "Install or upgrade vcbatch on a cluster, without Helm."),
    "uninstall": ("vcbatch.cli.install.command:uninstall", "Uninstall vcbatch; CRDs and jobs are kept."),
    "migrate": ("vcbatch.cli.migrate.command", "Plan a migration from Volcano, or back."),
    "crds": ("vcbatch.cli.install.crds", "Print or write the CustomResourceDefinitions."),
    "policies": ("vcbatch.cli.install.policies", "Print or write admission policies, for use without webhooks."),
    "completion": ("vcbatch.cli.completion.command", "Print a shell completion script (bash, zsh or fish)."),
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
    "up": "Local server",
    "run": "Jobs",
    "queue": "Queues, flows, schedules and nodes",
    "doctor": "Validate and simulate",
    "controllers": "Operate a cluster",
    "completion": "Other commands",
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
    """Batch system for machine-learning training on Kubernetes, compatible with Volcano's API.

    To get started, run `vcbatch up`, then submit jobs with `vcbatch run` or kubectl.
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


def _misused(error: click.UsageError) -> CliError:
    """Wrong usage as an error of this command line: lower case, and where the usage is described."""
    message = error.format_message()
    where = error.ctx.command_path if error.ctx is not None else _called()
    return CliError(message[:1].lower() + message[1:], hint=f"See '{where} --help' for usage.")


def main() -> NoReturn:
    """Exit code 0 for success, 1 for an error, 2 for wrong usage, 130 after Ctrl-C."""
    _end_as_first_process()
    try:
        sys.exit(cli.main(prog_name=_called(), standalone_mode=False) or 0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        complain(_misused(error))
        sys.exit(error.exit_code)
    except click.ClickException as error:
        complain(CliError(error.format_message()))
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
        hint = f"pip install '{extra}'"
        complain(CliError(f"`vcbatch {command}` requires {error.name}; install {extra}", hint=hint))
        sys.exit(1)
    except _ReaderGone:
        sys.stderr.close()  # the reader has gone, and so has anybody to complain to
        sys.exit(141)
