"""What a subclass keeps is saved and loaded, or saving is refused: nothing is lost silently."""

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import compressed
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.compressed.checkpoint import refuse_undeclared
from sb3_extra_buffers.errors import BufferStateError

pytestmark = pytest.mark.usefixtures("no_waiting")
ACTIONS = spaces.Discrete(5)


class Plain(CompressedReplayBuffer):
    """Adds nothing that would have to be kept."""

    def sample(self, batch_size, env=None):
        return super().sample(batch_size, env)


class Forgetful(CompressedReplayBuffer):
    def __init__(self, *args, alpha=0.6, **kwargs):
        super().__init__(*args, **kwargs)
        self.alpha, self.seen, self.names = alpha, 0, []
        self.stamps = np.zeros(self.buffer_size, "datetime64[s]")
        self.weights = np.ones(self.buffer_size)

    def add(self, *args):
        self.weights[self.pos] = self.seen
        super().add(*args)
        self.seen += 1
        self.names.append("x")


class Careful(Forgetful):
    _transient = ("names", "stamps")

    def _arguments(self):
        return {**super()._arguments(), "alpha": self.alpha}

    def _state(self):
        found = super()._state()
        found.facts["seen"] = self.seen
        return found

    def _restore(self, state):
        super()._restore(state)
        self.seen = state.number("seen", 0, 1 << 62)


@pytest.fixture
def filled(screen, walk, feed):
    def filled(kind, **options):
        buffer = kind(30, screen(), ACTIONS, "cpu", **options)
        for step in walk(screen(), ACTIONS, 1, 20):
            feed(step, buffer)
        return buffer

    return filled


def test_what_would_be_lost_is_named_and_nothing_is_written(filled, tmp_path):
    told = r"Forgetful: cannot save: it takes alpha and it keeps alpha, names, seen, stamps, which .*_arguments\(\)"
    with pytest.raises(BufferStateError, match=told):
        filled(Forgetful, alpha=0.9).save(tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_what_is_set_from_elsewhere_is_named_too(filled, tmp_path):
    buffer = filled(Plain)
    buffer.notes = "mine"
    with pytest.raises(BufferStateError, match="it keeps notes, which"):
        buffer.save(tmp_path / "checkpoint")


def test_what_a_subclass_says_that_it_keeps_comes_back(filled, tmp_path):
    buffer = filled(Careful, alpha=0.9)
    buffer.save(tmp_path / "checkpoint")
    loaded = Careful.load(tmp_path / "checkpoint", "cpu", verify=True)
    assert (loaded.alpha, loaded.seen, loaded.names) == (0.9, 20, [])
    assert (loaded.weights == buffer.weights).all()


def test_a_subclass_that_adds_nothing_is_saved(filled, tmp_path):
    buffer = filled(Plain)
    buffer.sample(5)
    buffer.save(tmp_path / "checkpoint")
    assert Plain.load(tmp_path / "checkpoint", "cpu").size() == 20


def test_names_in_transient_are_added_to_those_of_base_classes(filled, tmp_path):
    class MoreCareful(Careful):
        _transient = ("notes",)

    buffer = filled(MoreCareful)
    buffer.notes = "mine"
    buffer.save(tmp_path / "checkpoint")
    assert not hasattr(MoreCareful.load(tmp_path / "checkpoint", "cpu"), "notes")


#: Arguments that only some classes take.
MORE = {
    "ReplayBuffer": {},
    "DictReplayBuffer": {},
    "NStepReplayBuffer": {},
    "HerReplayBuffer": {"env": None},
    "RolloutBuffer": {},
    "DictRolloutBuffer": {},
    "MaskableRolloutBuffer": {},
    "MaskableDictRolloutBuffer": {},
    "RecurrentRolloutBuffer": {"hidden_state_shape": (30, 1, 1, 8)},
    "RecurrentDictRolloutBuffer": {"hidden_state_shape": (30, 1, 1, 8)},
}
GOALS = spaces.Dict({key: spaces.Box(-1, 1, (3,)) for key in ("observation", "achieved_goal", "desired_goal")})


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("options", [{}, {"heap": "ring", "heap_kwargs": {"capacity": 9000}}], ids=str)
def test_every_attribute_of_our_own_classes_is_known(name, options, screen, composite, walk, feed):
    if name.startswith(("Maskable", "Recurrent")):
        pytest.importorskip("sb3_contrib")
    kind, space = getattr(compressed, f"Compressed{name}"), composite(12) if "Dict" in name else screen()
    space = GOALS if name.startswith("Her") else space
    ahead = {} if kind._prefetch_obstacle else {"prefetch": True}
    own = type("Own", (kind,), {"__module__": "elsewhere"})
    buffer = own(30, space, ACTIONS, device="cpu", **options, **ahead, **MORE[name])
    if "Replay" in name:
        for step in walk(space, ACTIONS, 1, 40):
            feed(step, buffer)
        if buffer._kept_rows() and not name.startswith("Her"):
            buffer.sample(5)
    refuse_undeclared(buffer, buffer._arguments(), buffer._state())
    buffer.unknown = 1
    with pytest.raises(BufferStateError, match="it keeps unknown, which"):
        refuse_undeclared(buffer, buffer._arguments(), buffer._state())


def test_parameters_of_our_own_classes_may_be_repeated(screen, tmp_path):
    class Named(CompressedRolloutBuffer):
        def __init__(self, buffer_size, observation_space, action_space, device="auto", gamma=0.5, **kwargs):
            super().__init__(buffer_size, observation_space, action_space, device, gamma=gamma, **kwargs)

    buffer = Named(10, screen(), ACTIONS, "cpu", 0.7)
    buffer.save(tmp_path / "checkpoint")
    assert Named.load(tmp_path / "checkpoint", "cpu").gamma == 0.7
