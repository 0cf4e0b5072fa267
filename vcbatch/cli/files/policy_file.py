"""Reads a policy from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from vcbatch.cli.base.output import CliError
from vcbatch.scheduler import Policy, PolicyError, parse_policy
from vcbatch.scheduler.framework.arguments import PolicyErrorDetail
from vcbatch.scheduler.framework.policy import BUILT_IN, Extensions
from vcbatch.scheduler.policy.reader import MAX_POLICY_BYTES


def read_policy(path: Path, *, extensions: Extensions = BUILT_IN) -> Policy:
    """The policy in that file. Raises `CliError` with all its errors."""
    try:
        return parse_policy(policy_text(path), extensions=extensions)
    except PolicyError as error:
        raise CliError("\n".join(placed(path, error.errors))) from error


def placed(path: Path, errors: Sequence[PolicyErrorDetail], *, word: str = "") -> list[str]:
    """All errors of the policy in that file, each with its position and prefixed with `word`, the severity."""
    text = f"{word}: " if word else ""
    return [
        f"{path}:{one.line}:{one.column}: {text}{one.text}" if one.line else f"{path}: {text}{one.text}"
        for one in errors
    ]


def policy_text(path: Path) -> str:
    """The content of the file, `-` for standard input. Raises `CliError` where it can't be read or is too large."""
    try:
        with click.open_file(str(path), "rb") as stream:
            data: bytes = stream.read(MAX_POLICY_BYTES + 1)
        if len(data) > MAX_POLICY_BYTES:
            raise CliError(f"{path}: larger than {MAX_POLICY_BYTES} bytes")
        return data.decode()
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: not UTF-8 text: {error}") from error
