"""Validation of files by commands that send them to a server."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.cli.base.output import note
from vcbatch.cli.files.manifests import Manifest


def errors_before(manifests: Sequence[Manifest]) -> list[str]:
    """The errors of the objects for their creation, each with its position, as `vcbatch lint` reports them; empty, and
    a message on stderr, where the client is installed without what that requires."""
    try:
        from vcbatch.cli.lint.rules import Severity, complaints
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("vcbatch"):
            raise
        note("not validated before it is sent: install vcbatch[local] for that")
        return []
    return [str(one) for one in complaints(manifests) if one.severity is Severity.ERROR]
