"""Replay buffers against those of Stable-Baselines3, whatever is done to both, in whatever order."""

import copy
import pickle
import tempfile

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from stacked_scenes import EVENTS, KINDS, STACKS, Scene, add, bits, expect_same_arrays, make

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import ObservationError

HEAPS = {"memory": None, "ring": {"capacity": 1 << 21}, "mmap": {"capacity": 1 << 21}}
#: Mostly what a stack does; resets, ends that are timeouts, and observations that are no stack.
MOVES = st.sampled_from(["shift"] * 6 + list(EVENTS))


class ReplayMachine(RuleBasedStateMachine):
    @initialize(
        kind=st.sampled_from(sorted(KINDS)),
        stack=st.sampled_from(sorted(STACKS)),
        n_envs=st.integers(1, 3),
        rows=st.integers(1, 9),
        layout=st.sampled_from(["frames", "cells", "auto"]),
        codec=st.sampled_from([*codecs.names(), "auto"]),
        heap=st.sampled_from(sorted(HEAPS)),
        seed=st.integers(0, 99),
    )
    def begin(self, kind, stack, n_envs, rows, layout, codec, heap, seed):
        self.kind, self.n_envs, self.rows, self.number = kind, n_envs, rows, 0
        self.scene, self.folder = Scene(stack, n_envs, seed), None
        options = {"layout": layout, "compression_method": codec, "heap": heap, "heap_kwargs": HEAPS[heap]}
        self.ours, self.theirs = make(kind, self.scene, rows, n_envs, **options)

    @rule(data=st.data(), steps=st.integers(1, 12))
    def collect(self, data, steps):
        for _ in range(steps):
            events = [data.draw(MOVES) for _ in range(self.n_envs)]
            add([self.ours, self.theirs], self.scene, events, self.number)
            self.number += 1

    def can_sample(self):
        # With one row, Stable-Baselines3's buffer of one array has nothing to draw from.
        return self.theirs.size() > 1

    @precondition(can_sample)
    @rule(size=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
    def sample(self, size, seed):
        found = []
        for buffer in (self.ours, self.theirs):
            np.random.seed(seed)
            found.append((bits(buffer.sample(size)), np.random.random()))
        assert found[0] == found[1]

    @rule(reason=st.sampled_from(["shape", "infos", "reward"]))
    def add_what_does_not_fit(self, reason):
        obs = self.scene.observe()
        reward, infos = np.zeros(self.n_envs), [{}] * self.n_envs
        if reason == "shape":
            obs = obs[..., :-1]
        elif reason == "infos":
            infos = [None] * self.n_envs
        else:
            reward = np.zeros(self.n_envs + 1)
        if self.kind == "dict":
            obs = {"image": obs, "number": np.zeros((self.n_envs, 2), np.float32)}
        if reason == "infos" and not self.ours.handle_timeout_termination:
            return
        with pytest.raises(ObservationError):
            self.ours.add(obs, obs, np.zeros((self.n_envs, 1), int), reward, np.zeros(self.n_envs), infos)

    @precondition(lambda self: self.kind == "plain")
    @rule(data=st.data(), name=st.sampled_from(["observations", "next_observations"]))
    def write_by_hand(self, data, name):
        source, target = (data.draw(st.integers(0, self.rows - 1)) for _ in range(2))
        value = getattr(self.theirs, name)[source].copy()
        for buffer in (self.ours, self.theirs):
            getattr(buffer, name)[target] = value

    @rule(duplicate=st.sampled_from([copy.deepcopy, lambda buffer: pickle.loads(pickle.dumps(buffer))]))
    def go_on_with_a_copy(self, duplicate):
        left, self.ours = self.ours, duplicate(self.ours)
        left.reset()

    @rule()
    def go_on_with_what_was_saved(self):
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory()
        self.ours.save(self.folder.name)  # from the second time on, what has changed since
        left, self.ours = self.ours, type(self.ours).load(self.folder.name, "cpu", verify=True)
        left.reset()

    def teardown(self):
        if getattr(self, "folder", None) is not None:
            self.folder.cleanup()

    @rule()
    def reset(self):
        for buffer in (self.ours, self.theirs):
            buffer.reset()
            # Stable-Baselines3 leaves what was there, and never samples it; ours gives its memory back.
            for name in ("observations", "next_observations"):
                arrays = getattr(self.theirs, name, None)
                for array in arrays.values() if isinstance(arrays, dict) else [arrays]:
                    if array is not None:
                        array[...] = 0

    @invariant()
    def holds_the_same(self):
        if not hasattr(self, "ours"):
            return
        expect_same_arrays(self.ours, self.theirs)
        assert (self.ours.pos, self.ours.full, self.ours.size()) == (
            self.theirs.pos,
            self.theirs.full,
            self.theirs.size(),
        )
        for name in ("actions", "rewards", "dones", "timeouts"):
            np.testing.assert_array_equal(getattr(self.ours, name), getattr(self.theirs, name), name)


TestReplay = ReplayMachine.TestCase
TestReplay.settings = settings(max_examples=30, stateful_step_count=20, deadline=None, derandomize=True)


@pytest.mark.parametrize("layout", ["frames", "cells"])
def test_a_buffer_that_was_reset_is_saved_and_loaded(layout, tmp_path):
    scene = Scene("gray first", 2, seed=0)
    ours, theirs = make("plain", scene, 20, 2, layout=layout)
    for number in range(50):
        add([ours, theirs], scene, [EVENTS[number % 6], "shift"], number)
    for buffer in (ours, theirs):
        buffer.reset()
    for number in range(5):  # fewer than before: most cells still have what was forgotten
        ours.save(tmp_path / "checkpoint")
        ours = type(ours).load(tmp_path / "checkpoint", "cpu", verify=True)
        add([ours, theirs], scene, ["shift", EVENTS[number]], number)
    np.testing.assert_array_equal(np.asarray(ours.observations)[:5], theirs.observations[:5])
    np.testing.assert_array_equal(np.asarray(ours.next_observations)[:5], theirs.next_observations[:5])
