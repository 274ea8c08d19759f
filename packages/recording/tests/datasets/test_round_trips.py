"""Replay buffers exported and imported again hold the same bits."""

import numpy as np
import pytest

spaces = pytest.importorskip("gymnasium.spaces")
buffers = pytest.importorskip("stable_baselines3.common.buffers")

from sb3_extra_buffers.datasets import export_dataset, import_dataset, open_dataset  # noqa: E402
from sb3_extra_buffers.errors import (  # noqa: E402
    ExtraBuffersError,
    FileContentError,
    FileMissingError,
    ObservationError,
    ParameterError,
)

IMAGE = spaces.Box(0, 255, (3, 8, 8), np.uint8)
KINDS = {
    "dict": (spaces.Dict({"image": IMAGE, "vec": spaces.Box(-1, 1, (4,), np.float32)}), spaces.Box(-2, 2, (3,))),
    "image": (IMAGE, spaces.Discrete(4)),
    "float": (spaces.Box(-np.inf, np.inf, (5,), np.float64), spaces.Box(-1, 1, (2,))),
    "discrete": (spaces.Discrete(7), spaces.MultiDiscrete([3, 2])),
}
SIZE = 120


def make(kind, n_envs=1, size=SIZE):
    observation_space, action_space = KINDS[kind]
    cls = buffers.DictReplayBuffer if kind == "dict" else buffers.ReplayBuffer
    return cls(size * n_envs, observation_space, action_space, device="cpu", n_envs=n_envs)


def fill(buffer, steps, open_end=True):
    """Play random episodes: some are terminated, some truncated."""
    rng, count = np.random.default_rng(3), buffer.n_envs
    for space in (buffer.observation_space, buffer.action_space):
        space.seed(3)

    def observe():
        found = [buffer.observation_space.sample() for _ in range(count)]
        return (
            {key: np.stack([one[key] for one in found]) for key in found[0]}
            if isinstance(found[0], dict)
            else np.stack(found)
        )

    def choose(done, new, old):
        if isinstance(new, dict):
            return {key: choose(done, new[key], old[key]) for key in new}
        return np.where(done.reshape(-1, *[1] * (new.ndim - 1)), new, old).astype(new.dtype)

    current = observe()
    for step in range(steps):
        following = observe()
        done = (rng.random(count) < 0.15) | (not open_end and step == steps - 1)
        infos = [{"TimeLimit.truncated": bool(flag)} for flag in done & (rng.random(count) < 0.5)]
        actions = np.stack([buffer.action_space.sample() for _ in range(count)])
        buffer.add(current, following, actions, rng.random(count), done, infos)
        current = choose(done, observe(), following)
    return buffer


def arrays(buffer):
    rows = (buffer.pos - buffer.size() + np.arange(buffer.size())) % buffer.buffer_size
    found = {}
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        array = getattr(buffer, name)
        for key, part in (array if isinstance(array, dict) else {"": array}).items():
            found[f"{name}.{key}"] = part[rows]
    return found


def assert_equal(first, second):
    for name, part in arrays(first).items():
        np.testing.assert_array_equal(part, arrays(second)[name], err_msg=name)


@pytest.fixture(params=["parquet", "npz", "hf", "minari"])
def target(request, tmp_path, monkeypatch):
    """A target to write to, and a source to read it from."""
    library = {"parquet": "pyarrow", "hf": "datasets", "minari": "minari"}.get(request.param)
    if library:
        pytest.importorskip(library)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    (tmp_path / "minari").mkdir()
    folder = str(tmp_path / "set")
    return {"hf": (f"hf:{folder}", folder), "minari": ("minari:my/set-v0",) * 2}.get(
        request.param, (f"{folder}.{request.param}",) * 2
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [70, 200], ids=["partly filled", "wrapped"])
def test_transitions_come_back_bit_by_bit(kind, steps, target):
    old = fill(make(kind), steps, open_end=False)
    export_dataset(old, target[0], progress=False)
    new = make(kind)
    assert import_dataset(target[1], new, progress=False).transitions == old.size()
    assert_equal(old, new)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_an_open_last_episode_stays_open(suffix, tmp_path):
    old, new = fill(make("float"), 50), make("float")
    assert not old.dones[49].any()
    import_dataset(export_dataset(old, tmp_path / f"a.{suffix}", progress=False), new, progress=False)
    assert_equal(old, new)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_next_observations_that_are_no_following_ones_come_back(suffix, tmp_path):
    old, new, rng = make("float"), make("float"), np.random.default_rng(0)
    for _ in range(60):
        obs = rng.random((2, 1, 5))
        old.add(obs[0], obs[1], rng.random((1, 2)), rng.random(1), rng.random(1) < 0.2, [{}])
    import_dataset(export_dataset(old, tmp_path / f"a.{suffix}", progress=False), new, progress=False)
    assert_equal(old, new)


def test_several_environments_get_whole_episodes(tmp_path):
    old, new = fill(make("float", 3), 100, open_end=False), make("float", 2, 200)
    source = export_dataset(old, tmp_path / "a.npz", progress=False)
    found = import_dataset(source, new, progress=False)
    assert found.transitions == 2 * new.size()
    assert found.transitions + found.left_out == 300
    # Within an episode, each next observation is the following observation.
    steps = new.size()
    goes_on = new.dones[: steps - 1] == 0
    same = (new.next_observations[: steps - 1] == new.observations[1:steps]).all(axis=2)
    assert same[goes_on].all()
    rows = {part.tobytes() for part in old.observations[:100].reshape(-1, 5)}
    assert all(part.tobytes() in rows for part in new.observations[:steps].reshape(-1, 5))


def test_hdf5_in_the_form_of_d4rl_is_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    rng, new = np.random.default_rng(0), make("float")
    data = {"observations": rng.random((30, 5)), "actions": rng.random((30, 2)).astype(np.float32)}
    data |= {"rewards": rng.random(30).astype(np.float32), "terminals": np.arange(30) % 10 == 9}
    data |= {"timeouts": np.zeros(30, np.bool_)}
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for name, array in data.items():
            file[name] = array
    import_dataset(tmp_path / "a.hdf5", new, progress=False)
    np.testing.assert_array_equal(new.observations[:30, 0], data["observations"])
    np.testing.assert_array_equal(new.next_observations[0:9, 0], data["observations"][1:10])
    np.testing.assert_array_equal(new.next_observations[9, 0], data["observations"][9])
    data["timeouts"][19], data["terminals"][19] = True, False
    with h5py.File(tmp_path / "b.hdf5", "w") as file:
        for name, array in data.items():
            file[name] = array
    before = new.size()
    with pytest.raises(FileContentError, match="final observation"):
        import_dataset(tmp_path / "b.hdf5", new, progress=False)
    assert new.size() == before
    assert len(open_dataset(tmp_path / "b.hdf5", missing_final="drop")) == 29


def test_a_set_of_minaris_own_collector_is_read(tmp_path, monkeypatch):
    minari, gym = pytest.importorskip("minari"), pytest.importorskip("gymnasium")
    pytest.importorskip("jax", reason="minari.DataCollector needs minari[create]")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gym.make("CartPole-v1", max_episode_steps=12))
    seen, ends = [], []
    for episode in range(4):
        obs, _ = env.reset(seed=episode)
        env.action_space.seed(episode)
        while True:
            action = env.action_space.sample()
            following, reward, terminated, truncated, _ = env.step(action)
            seen.append((obs, following, action, reward))
            ends.append((terminated or truncated, truncated and not terminated))
            obs = following
            if terminated or truncated:
                break
    env.create_dataset("cart/pole-v0", algorithm_name="random", code_permalink="none", author="a", author_email="a@b.c")
    new = buffers.ReplayBuffer(100, env.observation_space, env.action_space, device="cpu")
    import_dataset("cart/pole-v0", new, progress=False)
    assert new.size() == len(seen)
    for name, column in zip(("observations", "next_observations", "actions", "rewards"), zip(*seen)):
        stored = getattr(new, name)[: len(seen)]
        np.testing.assert_array_equal(stored.reshape(len(seen), -1), np.array(column).reshape(len(seen), -1))
    np.testing.assert_array_equal(new.dones[: len(seen), 0], [one[0] for one in ends])
    np.testing.assert_array_equal(new.timeouts[: len(seen), 0], [one[1] for one in ends])


def test_columns_of_other_names_are_mapped(tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    values = rng.random((20, 5))
    table = {"pixels": list(values), "do": list(rng.random((20, 2))), "stop": np.arange(20) % 5 == 4}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(FileContentError, match="columns="):
        open_dataset(tmp_path / "a.parquet")
    new, columns = make("float"), {"observation": "pixels", "action": "do", "terminated": "stop", "reward": None}
    import_dataset(tmp_path / "a.parquet", new, columns=columns, progress=False)
    np.testing.assert_array_equal(new.observations[:20, 0], values)


@pytest.mark.parametrize("suffix", ["npz", "parquet", "hdf5", "pkl", "recording"])
@pytest.mark.parametrize("content", [b"", b"not what it says" * 100], ids=["empty", "foreign"])
def test_foreign_files_are_one_sentence(suffix, content, tmp_path):
    for library in ("h5py", "pyarrow"):
        pytest.importorskip(library)
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ExtraBuffersError, match="a\\."):
        open_dataset(path, trust_pickle=True, terminal_frames=True)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
@pytest.mark.parametrize("part", [0.3, 0.9])
def test_truncated_files_leave_the_buffer_unchanged(suffix, part, tmp_path):
    path = export_dataset(fill(make("image"), 100), tmp_path / f"a.{suffix}", progress=False)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    new = fill(make("image"), 10)
    before = arrays(new)
    with pytest.raises(ExtraBuffersError):
        import_dataset(path, new, progress=False)
    assert new.pos == 10
    for name, values in arrays(new).items():
        np.testing.assert_array_equal(values, before[name])


def test_misfits_are_refused_before_anything_is_stored(tmp_path):
    path = export_dataset(fill(make("float"), 100), tmp_path / "a.npz", progress=False)
    for kind in ("image", "dict", "discrete"):
        new = make(kind)
        with pytest.raises(ObservationError):
            import_dataset(path, new, progress=False)
        assert not new.size()
    with pytest.raises(ParameterError, match="room for 50"):
        import_dataset(path, make("float", size=50), progress=False)
    with pytest.raises(FileMissingError):
        open_dataset(tmp_path / "missing")
    (tmp_path / "a.pkl").write_bytes(b"")
    with pytest.raises(ParameterError, match="reading a pickle runs code"):
        open_dataset(tmp_path / "a.pkl")


def test_actions_of_an_environment_are_scaled_as_models_store_them(tmp_path):
    space, rng = spaces.Box(-2, 4, (2,)), np.random.default_rng(0)
    actions = rng.uniform(-2, 4, (10, 2)).astype(np.float32)
    arrays = {"observations": rng.random((10, 5)), "actions": actions, "rewards": np.zeros(10, np.float32)}
    np.savez(tmp_path / "a.npz", **arrays, terminals=np.arange(10) == 9)
    for scale, expected in ((None, 2 * (actions + 2) / 6 - 1), (False, actions)):
        new = buffers.ReplayBuffer(10, KINDS["float"][0], space, device="cpu")
        import_dataset(tmp_path / "a.npz", new, scale_actions=scale, progress=False)
        np.testing.assert_allclose(new.actions[:, 0], expected, atol=1e-6)
