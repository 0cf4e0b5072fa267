"""The command `vcbatch`. Each subcommand is imported when it is called, so that no command pays for the others."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from vcbatch._version import __version__
from vcbatch.cli.base.lazy import LazyGroup
from vcbatch.cli.base.output import CliError, complain
from vcbatch.cli.commands import COMMANDS, SECTIONS
from vcbatch.interfaces.installation import how_to_install


class _ReaderGone(Exception):
    """The reader of the output has closed it."""


class _Root(LazyGroup):
    def meant_by(self, word: str, ctx: click.Context) -> str:
        """The command with the most similar name; `job WORD` where WORD is a subcommand of `job`, since users
        omit `job`.
        """
        jobs = self.get_command(ctx, "job")
        if isinstance(jobs, LazyGroup) and word in jobs.list_commands(ctx):
            return f"job {word}"
        return super().meant_by(word, ctx)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None  # click would treat it as its own error, with exit code 1


@click.group(
    cls=_Root,
    commands_at={name: (entry.at, entry.summary) for name, entry in COMMANDS.items()},
    sections={next(iter(section)): title for title, section in SECTIONS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="vcbatch %(version)s")
def cli() -> None:
    """Batch system for machine-learning training on Kubernetes, compatible with Volcano's API.

    To get started, run `vcbatch up`, then submit jobs with `vcbatch run` or kubectl.
    """


def _called() -> str:
    """The name of the command as typed: kubectl finds its plugins by the names of programs."""
    return "kubectl vcbatch" if os.path.basename(sys.argv[0]).startswith("kubectl-") else "vcbatch"  # noqa: PTH119


def _end_as_first_process() -> None:
    """Let SIGTERM and SIGINT end process 1 of a container from its start. The kernel ignores signals that process 1 has
    no handler for, and a component installs its handlers only once it has reached its API server."""
    if os.getpid() != 1:
        return
    called = next((COMMANDS[word] for word in sys.argv[1:] if word in COMMANDS), None)
    if called is not None and called.until_signal:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))


def _misused(error: click.UsageError) -> CliError:
    """A usage error in the style of this program: lower case, with a reference to `--help`."""
    message = error.format_message()
    where = error.ctx.command_path if error.ctx is not None else _called()
    return CliError(message[:1].lower() + message[1:], hint=f"See '{where} --help' for usage.")


def main() -> NoReturn:
    """Run the command and exit: 0 for success, 1 for an error, 2 for wrong usage, 130 after Ctrl-C."""
    if sys.platform == "win32":
        complain(CliError("vcbatch doesn't run on Windows", hint="Use WSL 2: wsl --install"))
        sys.exit(1)
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
        command = next((name for name in sys.argv[1:] if name in COMMANDS), "")
        if not command or (error.name or "vcbatch").partition(".")[0] in ("vcbatch", "webhooks"):
            raise
        extra = COMMANDS[command].extra
        part = f", of the extra {extra}" if extra else ", which is not installed"
        complain(CliError(f"`vcbatch {command}` requires {error.name}{part}", hint=how_to_install(extra)))
        sys.exit(1)
    except _ReaderGone:
        sys.stderr.close()  # the reader has closed the output, so errors can't be shown either
        sys.exit(141)
