"""The reference page `docs/metrics.md`, generated from the definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vcbatch.observe.definitions import SECTIONS
from vcbatch.observe.definitions.metric import CONTROLLERS, SCHEDULER, WEBHOOKS, Metric, Section

_LETTERS: Final = {SCHEDULER: "S", CONTROLLERS: "C", WEBHOOKS: "W"}
_HEAD: Final = """\
# Metrics

`vcbatch scheduler`, `vcbatch controllers` and `vcbatch up` expose metrics in the Prometheus format on
`--listen-address`; `vcbatch webhooks` exposes them on its `--healthz-address`:

```sh
vcbatch up --detach --kubelet-mode none --virtual-nodes 1 --listen-address 127.0.0.1:18082
curl -fsS http://127.0.0.1:18082/metrics | grep volcano_queue_real_capacity_milli_cpu
vcbatch down
```

This page is generated from the definitions in `vcbatch/observe/definitions/`.

Metrics with the prefix `vcbatch_` follow the [conventions of Prometheus](https://prometheus.io/docs/practices/naming/):
seconds, bytes, counters that end in `_total`, and times as Unix seconds, so that an age is `time() - NAME`. Metrics
with the prefix `volcano_` have the names, labels and units that Volcano's dashboards expect: milliseconds, thousandths
of CPU and of scalar resources, and some counters without `_total`. There are no `_created` series.

Labels have few values or name an object. Series are removed when their queue, job or PodGroup is deleted. Labels of
`vcbatch_` metrics never contain a UID; if a label of a Volcano metric names the PodGroup of a job, its value is
`JOB-UID`.

The chart includes [alerts](runbooks/README.md) and Grafana dashboards for these metrics. In the column *By*, `S` stands
for `vcbatch scheduler`, `C` for `vcbatch controllers`, `W` for `vcbatch webhooks`; `vcbatch up` exports the metrics of
`S` and `C`. *Meaning* is the help text of the metric. A metric without a unit is a number of things, or 1 and 0.
"""
_COLUMNS: Final = ("Metric", "Type", "Labels", "Unit", "By", "Meaning")
_CODE: Final = re.compile(r"(?<![\w/])(?:/readyz|spec\.\w+|status\.\w+|job_id|job_name|minResources)(?![\w/])")
"""Parts of a help text that are names of fields, labels or paths: the page shows them as code."""


def render() -> str:
    """The page, in Markdown."""
    return "\n".join([_HEAD, *(_section(section) for section in SECTIONS)])


def _section(section: Section) -> str:
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in (_COLUMNS, ("---",) * 6, *_rows(section)))
    table = table.replace("| --- ", "|---").replace("--- |", "---|")
    return "\n".join(part for part in (f"## {section.title}\n", section.before, table, section.after) if part)


def _rows(section: Section) -> Iterator[tuple[str, ...]]:
    for metric in section.metrics:
        by = " ".join(_LETTERS[program] for program in metric.programs)
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"`{metric.name}`", metric.kind.value, labels, metric.unit.value, by, _meaning(metric)


def _meaning(metric: Metric) -> str:
    return _CODE.sub(lambda found: f"`{found.group()}`", metric.help).replace("|", "\\|")
