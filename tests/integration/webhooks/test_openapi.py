"""The service keeps what its OpenAPI document says: Schemathesis makes requests from it, good and bad."""

from __future__ import annotations

import json

import schemathesis
from hypothesis import HealthCheck, Phase, settings

from tests.support.admission_http import app_over
from tests.support.admission_world import World, queue
from vcbatch.api import supported
from vcbatch.api.admission import Settings

APP = app_over(World(known=[queue("root"), queue("default")]), Settings(unsupported=supported.NOTHING))
DOCUMENT = schemathesis.openapi.from_asgi("/openapi.json", APP)


@DOCUMENT.parametrize()
@settings(
    max_examples=12,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_what_the_document_says_holds(case: schemathesis.Case) -> None:
    case.call_and_validate()


def test_the_document_is_small_and_names_every_answer() -> None:
    document = json.dumps(DOCUMENT.raw_schema)
    assert len(document) < 100_000
    for path, methods in DOCUMENT.raw_schema["paths"].items():
        if path.endswith(("/mutate", "/validate")):
            assert {"200", "400", "408", "413", "415", "429"} <= methods["post"]["responses"].keys()
