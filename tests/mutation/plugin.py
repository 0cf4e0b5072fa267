"""How property tests run against a mutant: the same examples each time, and a failure isn't made smaller, since nobody
reads it."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile(
    "mutation", database=None, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("mutation")
