"""``RecordCallback``: episodes that are recorded while a model learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, sync_envs_normalization

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.buffers import BaseRecordBuffer
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath
from sb3_extra_buffers.recording.wrappers.frames import What, recording_for
from sb3_extra_buffers.recording.wrappers.tape import Tape
from sb3_extra_buffers.recording.wrappers.vec_tape import VecTape


class RecordCallback(BaseCallback):
    """
    Record some episodes now and then while a model learns: the first ones at once, the next after every so many steps.

    With ``eval_env``, the model plays them there, and training waits. Otherwise they are those that it trains on, from
    one of its environments; recording begins with the next episode that begins there. Steps are those of
    ``RecordEnv``. Needs the extra ``sb3``, and ``video`` to write videos.

    :param every: how many steps lie between the episodes, as the model counts them
    :param episodes: how many episodes are recorded at a time
    :param eval_env: where they are played; ``None`` for the environments of the training
    :param env: number of the environment that is recorded
    :param what: ``"observation"``, what the model sees; or ``"render"``, for which the environments need
        ``render_mode="rgb_array"``: see ``VecRecord``
    :param key: which part of the observation, if it is a dictionary
    :param folder: where to write a video of each recording, named after the steps that were trained; it is made if it
        is not there. ``None`` writes nothing
    :param video: arguments of ``to_video``, such as ``{"fps": 15}``
    :param keep: how many recordings to keep in :attr:`recordings`, the newest ones
    :param size: how many steps each recording keeps
    :param deterministic: whether the model takes the best action in ``eval_env``, or draws one
    :param verbose: verbosity level: 1 prints the name of each video
    :param options: more arguments of the recordings, such as ``compression_method``
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
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ParameterError("RecordCallback", name, value, "it must be an integer of at least 1")
        if folder is not None:
            for library in ("av", "PIL"):  # not after hours of training
                require(library, "RecordCallback with a folder")
        self.every, self.episodes, self.deterministic = every, episodes, deterministic
        # A name that BaseCallback does not use; to it, an eval_env is a parent's.
        self._stage = DummyVecEnv([lambda: eval_env]) if isinstance(eval_env, gymnasium.Env) else eval_env
        self._env, self._what, self._key = env, what, key
        self._folder = None if folder is None else Path(folder)
        self._video = {"progress": False, **(video or {})}
        self._size, self._options = size, options
        #: The newest recordings, oldest first.
        self.recordings: deque[BaseRecordBuffer] = deque(maxlen=keep)
        self._follower: VecTape | None = None
        self._left = self._due = 0

    def _on_training_start(self) -> None:
        self._due = self.num_timesteps
        self._follow(self._stage or self.training_env)  # what is wrong is found out before training
        self._follower = None
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        if self._stage is not None:
            self._play_if_due()
        elif not self.num_timesteps:  # training that goes on may be in the middle of an episode
            self._begin(self.model._last_obs)

    def _on_step(self) -> bool:
        if self._stage is not None:
            self._play_if_due()
            return True
        outcome = [self.locals[name] for name in ("new_obs", "rewards", "dones", "infos")]
        if self._follower is not None:
            # Where actions are drawn from a normal distribution, some are clipped before they are taken.
            actions = self.locals.get("clipped_actions", self.locals["actions"])
            self._follower.step(actions, *outcome)
            self._left -= bool(self.locals["dones"][self._env])
            if not self._left:
                self._finish()
        if self._follower is None and self.locals["dones"][self._env] and self.num_timesteps >= self._due:
            self._begin(self.locals["new_obs"])
        return True

    def _on_training_end(self) -> None:
        if self._follower is not None:
            self._finish()

    def _play_if_due(self) -> None:
        if self.num_timesteps < self._due:
            return
        stage = self._stage
        assert stage is not None
        if self.model.get_vec_normalize_env() is not None:
            sync_envs_normalization(self.training_env, stage)
        observations: Any = stage.reset()
        self._begin(observations)
        states, starts = None, [True] * stage.num_envs
        while self._left:
            assert self._follower is not None
            actions, states = self.model.predict(observations, states, starts, self.deterministic)  # type: ignore[arg-type]
            observations, rewards, dones, infos = stage.step(actions)
            self._follower.step(actions, observations, rewards, dones, infos)
            starts = dones  # type: ignore[assignment]
            self._left -= bool(dones[self._env])
        self._finish()

    def _follow(self, venv: VecEnv) -> VecTape:
        def maker(frame: Any) -> BaseRecordBuffer:
            otherwise = "train in a VecRecord with a FramelessRecordBuffer"
            return recording_for("RecordCallback", frame, self._size, self._options, otherwise)

        return VecTape("RecordCallback", venv, self._env, Tape("RecordCallback", maker, None), self._what, self._key)

    def _begin(self, observations: Any) -> None:
        self._follower = self._follow(self._stage or self.training_env)
        self._follower.begin(observations)
        self._left, self._due = self.episodes, self.num_timesteps + self.every
        self._since = self.num_timesteps

    def _finish(self) -> None:
        assert self._follower is not None
        recording = self._follower.tape.recording
        self._follower, self._left = None, 0
        if not len(recording):
            return
        self.recordings.append(recording)
        if self._folder is not None:
            path = self._folder / f"steps-{self._since:09d}.mp4"
            recording.to_video(path, **self._video)
            if self.verbose:
                print(f"RecordCallback: wrote {path}")
