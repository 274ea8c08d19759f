"""What a subclass keeps is saved and loaded, or saving is refused: nothing is lost without a word."""

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import compressed
from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.compressed.subclasses import _names, refuse_uncovered
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
    _transient = (*Forgetful._transient, "names", "stamps")

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


NAMES = ["ReplayBuffer", "DictReplayBuffer", "NStepReplayBuffer", "RolloutBuffer", "DictRolloutBuffer"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"heap": "ring", "heap_kwargs": {"capacity": 9000}}], ids=str)
def test_every_attribute_of_our_own_classes_is_known(name, options, screen, composite, walk, feed):
    kind, space = getattr(compressed, f"Compressed{name}"), composite(12) if "Dict" in name else screen()
    ahead = {} if kind._prefetch_obstacle else {"prefetch": True}
    buffer = type("Own", (kind,), {"__module__": "elsewhere"})(30, space, ACTIONS, "cpu", **options, **ahead)
    if "Replay" in name:
        for step in walk(space, ACTIONS, 1, 40):
            feed(step, buffer)
        buffer.sample(5)
    assert set(vars(buffer)) <= set().union(*(_names(part) for part in kind.__mro__))
    refuse_uncovered(buffer, buffer._arguments(), State())


def test_parameters_of_our_own_classes_may_be_repeated(screen, tmp_path):
    class Named(CompressedRolloutBuffer):
        def __init__(self, buffer_size, observation_space, action_space, device="auto", gamma=0.5, **kwargs):
            super().__init__(buffer_size, observation_space, action_space, device, gamma=gamma, **kwargs)

    buffer = Named(10, screen(), ACTIONS, "cpu", 0.7)
    buffer.save(tmp_path / "checkpoint")
    assert Named.load(tmp_path / "checkpoint", "cpu").gamma == 0.7
