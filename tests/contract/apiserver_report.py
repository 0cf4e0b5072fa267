"""Which recorded exchanges the embedded server answers alike: `python -m tests.contract.apiserver_report [GROUP …]`.

Without a group: the share of each. With groups: their differences, one by one.
"""

from __future__ import annotations

import json
import sys

import click

from tests.conformance import DATA
from tests.contract.apiserver_play import Outcome, groups, play_group


def _line(outcome: Outcome) -> str:
    request = outcome.request
    body = json.dumps(request.get("b"))[:200] if "b" in request else ""
    return f"--- {outcome.index} {request['m']} {request['p']} {body}\n  {outcome.difference}"


def main(names: list[str]) -> int:
    if DATA is None:
        click.echo("no conformance data beside this checkout")
        return 1
    alike = total = 0
    for group in names or groups(DATA):
        outcomes = play_group(DATA, group)
        good = sum(not outcome.difference for outcome in outcomes)
        alike += good
        total += len(outcomes)
        click.echo(f"{group:16} {good:3} of {len(outcomes):3}")
        if names:
            for outcome in outcomes:
                if outcome.difference:
                    click.echo(_line(outcome))
    click.echo(f"{'all':16} {alike:3} of {total:3}  {alike / total:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
