"""`vcbatch up` as a process: its signals, its log, and its fatal errors."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import signal
import sys
from collections.abc import Callable
from typing import Any

from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.components.job_plugins import add_job_plugins
from vcbatch.cli.files.plugin_files import load as load_plugins
from vcbatch.cli.files.policy_file import read_policy
from vcbatch.cli.local.options import LocalOptions
from vcbatch.cli.local.program import LocalProgram
from vcbatch.cli.local.report import Report
from vcbatch.cli.local.serving import NO_ROOM
from vcbatch.hosting.supervise import PartFailedError
from vcbatch.interfaces import ApiError
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.persistence import StateError
from vcbatch.local.apiserver.server import PortInUse
from vcbatch.local.kubelet import SandboxUnavailableError
from vcbatch.observe import logging as logs

log = logging.getLogger(__name__)


def run(options: LocalOptions, *, ready: Callable[[Report], None], to_log: bool) -> int:
    """Run until SIGINT or SIGTERM. `ready` is called once a job can be submitted. Raises `CliError`."""
    options.state.create()
    options.state.claim()
    try:
        # `kill -USR2 PID` prints the stack of every thread, to debug a hanging program.
        faulthandler.register(signal.SIGUSR2, all_threads=True)
        if to_log:
            logs.configure(file=options.state.log, json_lines=True)
        else:
            logs.configure(level=logging.WARNING)
        add_job_plugins()
        if options.scheduler_conf is not None:
            read_policy(options.scheduler_conf, extensions=load_plugins(options.plugins))
        return asyncio.run(_main(options, ready, reported=not to_log))
    except (StateError, PortInUse, PartFailedError) as error:
        raise CliError(str(error)) from error
    except SandboxUnavailableError as error:
        raise CliError(str(error), hint="Use --kubelet-mode auto to select a supported mode.") from error
    except (ApiError, StatusError) as error:  # the local server rejects an object of its setup
        raise CliError(f"the state directory {options.state.path} can't be used: {error}") from error
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        place = error.filename or options.state.path
        raise CliError(f"the state directory {options.state.path} can't be used: {place}: {error.strerror}") from error
    finally:
        options.state.release()


async def _main(options: LocalOptions, ready: Callable[[Report], None], *, reported: bool) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_report_stray)
    stop = asyncio.Event()

    def end() -> None:
        if reported and not stop.is_set():
            note("\nStopping; pods have up to 10 s to terminate ...")
        stop.set()

    # SIGHUP as well: a closed terminal would otherwise end this process without ending its pods.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
    loop.add_signal_handler(signal.SIGUSR1, _print_tasks)
    await LocalProgram(options).run(stop, ready)
    return 0


def _print_tasks() -> None:
    """Print what every task waits for, on `kill -USR1 PID`, to debug a program that doesn't proceed."""
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        sys.stderr.write(f"{task.get_name()}\n")
        awaited: Any = task.get_coro()
        while (frame := getattr(awaited, "cr_frame", None)) is not None:
            sys.stderr.write(f"  {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}\n")
            awaited = awaited.cr_await
    sys.stderr.flush()


def _report_stray(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log exceptions in the event loop that no task receives."""
    log.error("%s", context.get("message", "an error in the event loop"), exc_info=context.get("exception"))
