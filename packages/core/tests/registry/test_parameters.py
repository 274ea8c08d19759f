"""Parameters are completed, never guessed, and the caller's dictionary is left alone."""

import pytest

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.registry import complete_parameters


def test_defaults_fill_what_is_left_out_and_the_given_dictionary_is_not_changed():
    given = {"level": 3}
    assert complete_parameters("x", given, {"level": 9, "checksum": False}) == {"level": 3, "checksum": False}
    assert given == {"level": 3}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speed": 1}, "x: speed=1 is not allowed; known parameters: checksum, level, size"),
        ({"level": True}, "level=True is not allowed; it must be of type int, like 9"),
        ({"level": 3.0}, "level=3.0"),
        ({"checksum": 1}, "checksum=1 is not allowed; it must be of type bool"),
        ({"level": 3}, "size=None is not allowed; it must be given"),
    ],
)
def test_what_is_unknown_missing_or_of_another_type_is_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        complete_parameters("x", given, {"level": 9, "checksum": False}, required=("size",))


def test_an_owner_without_parameters_says_so():
    with pytest.raises(ParameterError, match="it takes no parameters"):
        complete_parameters("x", {"level": 1}, {})
