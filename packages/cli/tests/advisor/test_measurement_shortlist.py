"""Only what is worth a buffer goes on, and of all others it is said why they do not."""

from sb3_extra_buffers.advisor.measurement import Screened, shortlist, slowest_encode_s
from sb3_extra_buffers.codecs import CodecSpec


def one(name, ratio, seconds):
    return Screened(CodecSpec(name), ratio, seconds / 2, seconds / 2)


def reasons(dropped):
    return {some.spec.name: some.reason for some in dropped}


def test_only_what_nothing_beats_goes_on():
    quick, small, beaten, useless = one("q", 4, 1e-5), one("s", 9, 9e-5), one("b", 3, 5e-5), one("u", 1.1, 1e-6)
    chosen, dropped = shortlist([quick, small, beaten, useless], 5)
    assert chosen == [quick, small]
    assert reasons(dropped) == {"u": "less than a fifth is saved", "b": "another is both smaller and faster"}


def test_what_takes_for_ever_does_not_go_on_unless_any_time_will_do():
    slow, fine = one("slow", 99, 1.0), one("fine", 9, 1e-4)
    chosen, dropped = shortlist([slow, fine], 5, slowest_encode_s(1000))
    assert chosen == [fine]
    assert reasons(dropped) == {"slow": "more than 1.0 ms to encode an observation"}
    assert shortlist([slow, fine], 5) == ([fine, slow], [])


def test_larger_observations_may_take_longer():
    assert slowest_encode_s(40) == slowest_encode_s(4 * 84 * 84) == 1e-3
    assert slowest_encode_s(40 * 84 * 84) == 1e-2


def test_of_many_the_ends_and_some_between_go_on():
    front = [one(str(number), 2 + number, 1e-5 * (number + 1)) for number in range(20)]
    chosen, dropped = shortlist(front, 5)
    assert len(chosen) == 5
    assert chosen[0] == front[0]
    assert chosen[-1] == front[-1]
    assert set(reasons(dropped).values()) == {"between two that went into buffers"}
    assert len(dropped) == 15
