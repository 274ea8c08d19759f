"""Public names and signatures of version 1.0 stay as they are."""

import json
from pathlib import Path

import pytest

from scripts.public_api import public_api

RECORDED = json.loads(Path(__file__).with_name("public_api.json").read_text())

#: Signatures that got optional parameters since, after all that were recorded.
EXTENDED = {
    "CodecPlugin": ", automatic=…, identity=…)",
    "KeyReport": ", choice=…)",
    "Measured": ", choices=…)",
    "HeapPlugin": ", grows=…, in_memory=…, fits_worst_case=…, local=…)",
}


@pytest.fixture(scope="module")
def found():
    return public_api()


@pytest.mark.parametrize("module", RECORDED)
def test_every_recorded_name_has_its_recorded_signature(module, found):
    changed = {
        name: (signature, found[module].get(name))
        for name, signature in RECORDED[module].items()
        if found[module].get(name) != (signature[:-1] + EXTENDED[name] if name in EXTENDED else signature)
    }
    assert changed == {}


def test_every_module_of_the_reference_is_recorded(found):
    assert set(found) <= set(RECORDED) | {"sb3_extra_buffers.checkpoints", "sb3_extra_buffers.gpu_buffers.testing"}
