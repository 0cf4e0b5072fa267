"""`vcctl jobflow` and `vcctl jobtemplate`, which have the same commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcbatch.api.loose import part
from vcbatch.api.resources import JOBFLOWS, JOBTEMPLATES, Resource
from vcbatch.cli.base.fields import dig, name_of, namespace_of, text, uid_of
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.vcctl.access import once, required
from vcbatch.cli.vcctl.columns import NOTHING, Column, table
from vcbatch.cli.vcctl.commands import NAMESPACE
from vcbatch.cli.vcctl.flags import Given
from vcbatch.cli.vcctl.words import since
from vcbatch.interfaces.api import Api, ApiError, Json

_GAP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowCommands:
    """The commands for one kind. `words`: its name in messages; `stateful`: whether it has a phase to print;
    `separator`: the text between several objects."""

    resource: Resource
    words: str
    stateful: bool
    separator: str

    # Read commands

    def list_all(self, given: Given) -> int:
        """Print the objects of a namespace, or of all."""
        everywhere = "all-namespaces" in given.values and given.on("all-namespaces")

        async def work(api: Api) -> Sequence[Json]:
            return (await api.list(self.resource, namespace=None if everywhere else given.text("namespace"))).items

        return self._print(once(given, work))

    def get(self, given: Given) -> int:
        """Print one object."""
        name = required(given, "name", f"name is mandatory to get the particular {self.words} details")
        return self._print([once(given, lambda api: api.get(self.resource, name, namespace=given.text("namespace")))])

    def _print(self, found: Sequence[Json]) -> int:
        titles = ("Name", "Namespace", "Phase", "Age") if self.stateful else ("Name", "Namespace")
        rows = [self._row(one) for one in found]
        say(table([Column(title=title, gap=_GAP) for title in titles], rows) if rows else NOTHING)
        return 0

    def _row(self, one: Json) -> list[str]:
        row = [name_of(one), namespace_of(one)]
        if self.stateful:
            row += [text(one, "status", "state", "phase"), since(dig(one, "metadata", "creationTimestamp"))]
        return row

    def describe(self, given: Given) -> int:
        """Print one object, or all of the namespace, as stored."""
        name, namespace, form = given.text("name"), given.text("namespace"), given.text("format")
        if form not in _FORMATS:
            raise CliError(f"Unsupported format: {form}", hint=f"Give {' or '.join(_FORMATS)} with --format.")

        async def work(api: Api) -> Sequence[Json]:
            if name:
                return [await api.get(self.resource, name, namespace=namespace)]
            return (await api.list(self.resource, namespace=namespace)).items

        say(self.separator.join(_FORMATS[form](self._stored(one)) for one in once(given, work)), end="")
        return 0

    def _stored(self, one: Json) -> Json:
        """The object with its kind, without `managedFields`, in the field order of Volcano's types."""
        metadata = {key: value for key, value in part(one, "metadata").items() if key != "managedFields"}
        rest = {key: value for key, value in one.items() if key not in ("apiVersion", "kind", "metadata")}
        kind = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return {**kind, "metadata": metadata, **rest}

    # Write commands

    def create(self, given: Given) -> int:
        """Create all objects of the file; a rejected one doesn't stop the others."""
        found = self._in_file(required(given, "file", f"{self.words} file must be specified"))

        async def make(api: Api, one: Json) -> None:
            await api.create(self.resource, one, namespace=namespace_of(one))

        return self._each(given, found, "create", "Created", make)

    def delete(self, given: Given) -> int:
        """Delete the objects of the file, or the one of this name."""
        if given.text("file"):

            async def drop(api: Api, one: Json) -> None:
                await api.delete(self.resource, name_of(one), namespace=namespace_of(one))

            return self._each(given, self._in_file(given.text("file")), "delete", "Deleted", drop)
        name = required(given, "name", f"{self.words} name must be specified")
        namespace = given.text("namespace")

        async def work(api: Api) -> None:
            # By UID: another object that has the name by now isn't deleted.
            there = await api.get(self.resource, name, namespace=namespace)
            await api.delete(self.resource, name, namespace=namespace, uid=uid_of(there) or None)

        once(given, work)
        say(f"Deleted {self.resource.kind}: {namespace}/{name}")
        return 0

    def _each(
        self,
        given: Given,
        found: Sequence[Json],
        verb: str,
        done: str,
        act: Callable[[Api, Json], Awaitable[None]],
    ) -> int:
        """Print a line for each object, and raise an error at the end where one failed."""

        async def work(api: Api) -> int:
            failures = 0
            for one in found:
                try:
                    await act(api, one)
                except ApiError as error:
                    failures += 1
                    say(f"Failed to {verb} {self.resource.kind}: {error}")
                else:
                    say(f"{done} {self.resource.kind}: {namespace_of(one)}/{name_of(one)}")
            return failures

        failures = once(given, work)
        if failures:
            raise CliError(f"{failures} of {len(found)} failed")
        return 0

    def _in_file(self, file: str) -> list[Json]:
        """All objects of the file, each with a namespace. Raises `CliError`, before anything is changed, where the file
        contains other kinds."""
        from vcbatch.cli.files.documents import documents

        wanted = (self.resource.api_version, self.resource.kind)
        found: list[Json] = []
        for document in documents(Path(file), letters=True, lenient=True):
            one: Json = {"apiVersion": wanted[0], "kind": wanted[1], **document}
            if (one["apiVersion"], one["kind"]) != wanted:
                raise CliError(
                    f"{file}: {one['kind']} of {one['apiVersion']} is no {self.words}: "
                    f"want kind {wanted[1]} of {wanted[0]}"
                )
            metadata: Any = one.get("metadata")
            if not isinstance(metadata, dict) or not metadata.get("name"):
                raise CliError(f"{file}: a {self.words} without metadata.name")
            one["metadata"] = {**metadata, "namespace": metadata.get("namespace") or NAMESPACE}
            found.append(one)
        if not found:
            raise CliError(f"{file}: no {self.words} in it")
        return found


_CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Escapes for control characters that JSON allows but terminals interpret."""


def _json(one: Json) -> str:
    import json

    return json.dumps(one, indent=2, ensure_ascii=False).translate(_CONTROLS) + "\n"


def _yaml(one: Json) -> str:
    from vcbatch.api import yaml_writer

    return yaml_writer.dump(one, sort_keys=True, width=yaml_writer.UNLIMITED)


_FORMATS: dict[str, Callable[[Json], str]] = {"yaml": _yaml, "json": _json}

JOBFLOW = FlowCommands(resource=JOBFLOWS, words="jobflow", stateful=True, separator="-" * 33 + "\n")
JOBTEMPLATE = FlowCommands(resource=JOBTEMPLATES, words="job template", stateful=False, separator="\n\n")
