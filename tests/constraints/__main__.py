"""Judge worlds: `python -m tests.constraints [--worlds 2000] [--seed 1] [--kind WORDS]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from random import Random

from tests.constraints import kinds, plugin_kinds, queue_kinds
from tests.constraints.judge import judge

KINDS = {**kinds.KINDS, **queue_kinds.KINDS, **plugin_kinds.KINDS}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="", help="only kinds with these words in their names")
    given = parser.parse_args()
    names = [name for name in KINDS if given.kind in name]
    wrong: Counter[str] = Counter()
    for nth in range(given.worlds):
        name = names[nth % len(names)]
        errors = judge(KINDS[name](Random(f"{given.seed}/{name}/{nth}")))
        if errors:
            wrong[name] += 1
            if wrong[name] == 1:
                sys.stdout.write("\n    ".join([f"{name} (world {nth}):", *errors]) + "\n")
    bad = sum(wrong.values())
    sys.stdout.write(f"{given.worlds - bad} of {given.worlds} worlds of {len(names)} kinds; wrong: {dict(wrong)}\n")
    return 1 if bad * 100 > given.worlds else 0


if __name__ == "__main__":
    sys.exit(main())
