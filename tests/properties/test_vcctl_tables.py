"""Tables keep their columns whatever stands in them: long names, no names, wide letters, and what a terminal would act
on."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from vcbatch.cli.base.terminal import cells
from vcbatch.cli.vcctl.columns import Column, table
from vcbatch.cli.vcctl.job_view import events_text, job_text

CELLS = st.one_of(
    st.text(max_size=60),
    st.text("abcdefghijklmnopqrstuvwxyz0123456789-", max_size=253),
    st.sampled_from(
        ["", "名前", "é", "e\N{COMBINING ACUTE ACCENT}", "🚀", "\x1b[31mred", "two\nlines", "\t", "\u202e"]
    ),
    st.integers(-10, 10**12).map(str),
)
COLUMNS = st.lists(
    st.builds(
        Column,
        title=st.sampled_from(["Name", "Namespace", "Age", "Completed"]),
        width=st.integers(0, 30),
        gap=st.integers(1, 8),
        title_gap=st.none() | st.integers(1, 8),
    ),
    min_size=1,
    max_size=5,
)


@given(COLUMNS, st.data())
def test_every_cell_begins_where_its_title_does(columns: list[Column], data: st.DataObject):
    rows = data.draw(st.lists(st.lists(CELLS, min_size=len(columns), max_size=len(columns)), max_size=6))
    header, *lines = table(columns, rows).split("\n")
    assert len(lines) == len(rows)
    assert {cells(line) for line in lines} <= {cells(header)}
    assert all(line.isprintable() for line in lines)
    for column in columns:
        assert column.title in header


@given(st.lists(st.from_regex(r"[a-z]{1,40}", fullmatch=True), max_size=6), st.integers(0, 30))
def test_cells_are_apart_and_widths_are_kept_where_they_suffice(names: list[str], width: int):
    columns = (Column(title="Name", width=width), Column(title="Next", width=8))
    lines = table(columns, [(name, 1) for name in names]).split("\n")
    longest = max((len(name) for name in (*names, "Name")), default=0)
    expected = max(width, longest + 1)
    assert lines[0].index("Next") == expected
    for name, line in zip(names, lines[1:], strict=True):
        assert line.split() == [name, "1"]
        assert line[expected] == "1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=12,
)
SECTIONS = ("metadata", "spec", "status", "involvedObject", "source")
KEYS = [
    "name",
    "labels",
    "annotations",
    "creationTimestamp",
    "plugins",
    "tasks",
    "template",
    "containers",
    "resources",
    "limits",
    "conditions",
    "state",
    "controlledResources",
    "command",
    "ports",
    "count",
    "firstTimestamp",
    "lastTimestamp",
    "message",
    "type",
    "reason",
]
ODD = st.dictionaries(
    st.sampled_from(SECTIONS), st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6) | JSON, max_size=5
)


@example(job={"spec": {"plugins": {"\x1b[2J": []}}}, events=[])
@given(job=ODD, events=st.lists(ODD, max_size=3))
def test_the_oddest_job_can_be_looked_at(job: dict[str, object], events: list[dict[str, object]]):
    shown = job_text(job) + events_text(events)
    assert shown.endswith("\n")
    assert all(line.replace("\t", "").isprintable() for line in shown.split("\n"))
