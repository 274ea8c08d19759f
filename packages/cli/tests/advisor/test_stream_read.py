"""Files of observations become streams."""

import numpy as np
import pytest

from sb3_extra_buffers.advisor import read
from sb3_extra_buffers.errors import FileContentError, ParameterError

SCREENS = np.random.default_rng(0).integers(0, 255, (90, 40, 44, 3), dtype=np.uint8)
VECTORS = np.random.default_rng(1).normal(size=(90, 5)).astype(np.float32)


@pytest.fixture
def saved(tmp_path):
    def saved(**arrays):
        np.savez(tmp_path / "file.npz", **arrays)
        return tmp_path / "file.npz"

    return saved


@pytest.mark.parametrize("name", ["observations", "obs", "frames", "arr_0", "whatever"])
def test_the_array_of_observations_is_found(saved, name):
    stream = read(saved(**{name: VECTORS}))
    assert len(stream.steps) == 89
    for number, step in enumerate(stream.steps):
        assert np.array_equal(step.observations[0], VECTORS[number])
        assert np.array_equal(step.next_observations[0], VECTORS[number + 1])
    assert stream.observation_space.dtype == np.float32
    assert stream.label == "file.npz"


def test_images_are_transposed_as_an_algorithm_would(saved):
    stream = read(saved(observations=SCREENS))
    assert stream.observation_space.shape == (3, 40, 44)
    assert np.array_equal(stream.steps[5].observations[0], SCREENS[5].transpose(2, 0, 1))


def test_no_transition_leads_from_one_episode_into_the_next(saved):
    dones = np.zeros(90, np.bool_)
    dones[[9, 40]] = True
    steps = read(saved(observations=VECTORS, dones=dones)).steps
    assert len(steps) == 87
    firsts = [float(step.observations[0, 0]) for step in steps]
    assert float(VECTORS[9, 0]) not in firsts
    assert steps[8].dones.tolist() == [True]
    assert np.array_equal(steps[8].next_observations[0], VECTORS[9])
    assert np.array_equal(steps[9].observations[0], VECTORS[10])


@pytest.mark.parametrize(("every", "told"), [(1, "that no two observations belong to one episode"), (2, "44 of them")])
def test_episodes_too_short_to_have_transitions_are_told_from_short_files(saved, every, told):
    dones = np.zeros(90, np.bool_)
    dones[::every] = True
    with pytest.raises(FileContentError, match=rf"expected 64 transitions within episodes, found {told}\. .*'dones'"):
        read(saved(observations=VECTORS, dones=dones))


@pytest.mark.parametrize("steps", [64, 70, 300])
def test_a_file_is_read_on_until_there_are_as_many_transitions_as_are_needed(saved, steps):
    rows, dones = np.arange(1000, dtype=np.float32).reshape(1000, 1), np.zeros(1000, np.bool_)
    dones[::3] = True  # two transitions for three observations
    stream = read(saved(observations=rows, dones=dones), steps)
    assert len(stream.steps) == steps
    firsts = [int(step.observations.item()) for step in stream.steps]
    assert firsts == [number for number in range(1000) if number % 3][:steps]
    assert len(read(saved(observations=rows, dones=dones), 900).steps) == 666


def test_steps_too_few_to_judge_by_are_not_blamed_on_the_file(saved):
    with pytest.raises(ParameterError, match=r"steps=10 is not allowed; it takes 64 to judge by\. Read more of the"):
        read(saved(observations=VECTORS), steps=10)


def test_npy_files_are_read_too(tmp_path):
    np.save(tmp_path / "file.npy", SCREENS)
    assert len(read(tmp_path / "file.npy", steps=70).steps) == 70


@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.uint8, np.float64])
def test_any_dtype_of_numbers_is_kept(saved, dtype):
    rows = (VECTORS > 0).astype(dtype)
    stream = read(saved(observations=rows))
    assert stream.observation_space.dtype == dtype
    assert stream.observation_space.contains(stream.steps[0].observations[0])


def test_files_that_hold_something_else_are_refused(saved, tmp_path):
    with pytest.raises(FileContentError, match=r"found actions, rewards\. Call the array 'observations'"):
        read(saved(actions=VECTORS, rewards=VECTORS))
    with pytest.raises(FileContentError, match=r"'dones', one for each observation, found \(7,\) for 90 observations"):
        read(saved(observations=VECTORS, dones=np.zeros(7)))
    with pytest.raises(FileContentError, match="an array of <U1 with shape"):
        read(saved(observations=np.array(["a"] * 90).reshape(90, 1)))
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and nothing more")
    np.save(tmp_path / "objects.npy", np.array([{}] * 90), allow_pickle=True)
    for name in ("broken.npz", "objects.npy"):
        with pytest.raises(FileContentError, match="content that numpy cannot read"):
            read(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.npz")
    with pytest.raises(FileContentError, match=r"expected more than 64 observations, found 10 of them"):
        read(saved(observations=VECTORS[:10]))
    with pytest.raises(FileContentError, match="a single number under 'observations'"):
        read(saved(observations=np.array(7)))
    (tmp_path / "text.npz").write_text("just some text")
    with pytest.raises(FileContentError, match="it begins with b'ju'"):
        read(tmp_path / "text.npz")
    with pytest.raises(FileContentError, match="found a folder"):
        read(tmp_path)
