"""``RecordCallback``: records episodes during training."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, sync_envs_normalization

from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer
from sb3_extra_buffers.recording.casting import check_integer
from sb3_extra_buffers.recording.episode_recorder import EpisodeRecorder, What, recording_for
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath
from sb3_extra_buffers.recording.vec_record import VecEpisodeRecorder


class RecordCallback(BaseCallback):
    """
    Record some episodes at the start of training, and again after every ``every`` steps.

    With ``eval_env``, the model plays the episodes there, and training waits. Otherwise episodes of one training
    environment are recorded, starting with the next episode that begins there. Steps are those of ``RecordEnv``. Needs
    the extra ``sb3``, and ``video`` to write videos.

    :param every: steps of the model between recordings
    :param episodes: number of episodes per recording
    :param eval_env: environment for the episodes; ``None`` for the training environments
    :param env: number of the recorded environment
    :param what: ``"observation"``, the input of the model, or ``"render"``, which needs ``render_mode="rgb_array"``:
        see ``VecRecord``
    :param key: key of a Dict observation
    :param folder: folder for a video of each recording, named by the number of trained steps; created if missing.
        ``None`` writes no videos
    :param video: arguments of ``to_video``, such as ``{"fps": 15}``
    :param keep: number of recordings kept in :attr:`recordings`
    :param size: number of steps kept by each recording
    :param deterministic: whether the model takes deterministic actions in ``eval_env``
    :param verbose: verbosity level: 1 prints the name of each video
    :param options: other arguments of the recordings, such as ``compression_method``
    """

    def __init__(
        self,
        every: int,
        *,
        episodes: int = 1,
        eval_env: VecEnv | gymnasium.Env[Any, Any] | None = None,
        env: int = 0,
        what: What = "observation",
        key: str | None = None,
        folder: AnyPath | None = None,
        video: Mapping[str, Any] | None = None,
        keep: int = 3,
        size: int = 40_000,
        deterministic: bool = True,
        verbose: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(verbose)
        for name, value in (("every", every), ("episodes", episodes), ("keep", keep)):
            check_integer("RecordCallback", name, value)
        if folder is not None:
            for library in ("av", "PIL"):  # fail now, not after hours of training
                require(library, "RecordCallback with a folder")
        self.every, self.episodes, self.deterministic = every, episodes, deterministic
        # Not named eval_env: BaseCallback uses that name.
        self._eval_env = DummyVecEnv([lambda: eval_env]) if isinstance(eval_env, gymnasium.Env) else eval_env
        self._env, self._what, self._key = env, what, key
        self._folder = None if folder is None else Path(folder)
        self._video = {"progress": False, **(video or {})}
        self._size, self._options = size, options
        #: The newest recordings, oldest first.
        self.recordings: deque[BaseRecordBuffer] = deque(maxlen=keep)
        self._recorder: VecEpisodeRecorder | None = None
        self._episodes_left = self._next_start = 0

    def _on_training_start(self) -> None:
        self._recorder, self._next_start = None, self.num_timesteps
        self._create_recorder()  # raises on wrong arguments before training
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        if self._eval_env is not None:
            self._evaluate_if_due()
        elif not self.num_timesteps:  # continued training may be in the middle of an episode
            self._begin(self.model._last_obs)

    def _on_step(self) -> bool:
        if self._eval_env is not None:
            self._evaluate_if_due()
            return True
        outcome = [self.locals[name] for name in ("new_obs", "rewards", "dones", "infos")]
        if self._recorder is not None:
            # Actions sampled from a normal distribution are clipped before they are taken.
            actions = self.locals.get("clipped_actions", self.locals["actions"])
            self._recorder.step(actions, *outcome)
            self._episodes_left -= bool(self.locals["dones"][self._env])
            if not self._episodes_left:
                self._finish()
        if self._recorder is None and self.locals["dones"][self._env] and self.num_timesteps >= self._next_start:
            self._begin(self.locals["new_obs"])
        return True

    def _on_training_end(self) -> None:
        if self._recorder is not None:
            self._finish()

    def _evaluate_if_due(self) -> None:
        if self.num_timesteps < self._next_start:
            return
        venv = self._eval_env
        assert venv is not None
        if self.model.get_vec_normalize_env() is not None:
            sync_envs_normalization(self.training_env, venv)
        observations: Any = venv.reset()
        self._begin(observations)
        states, starts = None, [True] * venv.num_envs
        while self._episodes_left:
            assert self._recorder is not None
            actions, states = self.model.predict(observations, states, starts, self.deterministic)  # type: ignore[arg-type]
            observations, rewards, dones, infos = venv.step(actions)
            self._recorder.step(actions, observations, rewards, dones, infos)
            starts = dones  # type: ignore[assignment]
            self._episodes_left -= bool(dones[self._env])
        self._finish()

    def _create_recorder(self) -> VecEpisodeRecorder:
        def create(frame: Any) -> BaseRecordBuffer:
            alternative = "train in a VecRecord with a FramelessRecordBuffer"
            return recording_for("RecordCallback", frame, self._size, self._options, alternative)

        recorder = EpisodeRecorder("RecordCallback", create, None)
        venv = self._eval_env or self.training_env
        return VecEpisodeRecorder("RecordCallback", venv, self._env, recorder, self._what, self._key)

    def _begin(self, observations: Any) -> None:
        self._recorder = self._create_recorder()
        self._recorder.begin(observations)
        self._episodes_left, self._next_start = self.episodes, self.num_timesteps + self.every
        self._start = self.num_timesteps

    def _finish(self) -> None:
        assert self._recorder is not None
        recording = self._recorder.recording
        self._recorder, self._episodes_left = None, 0
        if not len(recording):
            return
        self.recordings.append(recording)
        if self._folder is not None:
            path = self._folder / f"steps-{self._start:09d}.mp4"
            recording.to_video(path, **self._video)
            if self.verbose:
                print(f"RecordCallback: wrote {path}")
