"""The root package belongs to nobody, so that other distributions can add to it."""

import sb3_extra_buffers


def test_the_root_is_a_namespace_without_code():
    assert sb3_extra_buffers.__file__ is None
    assert sb3_extra_buffers.__spec__.origin is None
