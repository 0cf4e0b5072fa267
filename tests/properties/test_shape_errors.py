"""The quick look at the types of a pod template agrees with the one that tells what is wrong."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.test_admission_service_never_fails import ODD, POD, places, spoiled
from tests.support.examples import examples
from vcbatch.api.crd import shape
from vcbatch.api.crd.schemas import core_type

SCHEMA = core_type("PodTemplateSpec")
TEMPLATE: Any = {"metadata": {"labels": {"a": "b"}}, "spec": POD}


@settings(max_examples=examples(200))
@given(data=st.data())
def test_what_fits_has_no_faults_and_what_does_not_has_some(data: st.DataObject) -> None:
    made = copy.deepcopy(TEMPLATE)
    for _ in range(data.draw(st.integers(0, 2))):
        made = spoiled(made, data.draw(st.sampled_from(places(made))), data.draw(ODD))
    assert shape._fits(made, SCHEMA) is not any(shape._errors(made, SCHEMA, "template", shape._type_name))


def test_a_good_template_fits() -> None:
    assert shape.shape_errors(TEMPLATE, SCHEMA, "template") == []
