"""Processes that play Catch: transitions go into a ring, weights come from a board."""

from __future__ import annotations

import multiprocessing
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer

from examples._lib.catch_learner import make_learner
from sb3_extra_buffers.sharing import Board, Ring, transition_record

#: Records in a ring: transitions that an actor may be ahead of the learner.
_SLOTS = 64
#: First and last exploration rate of the actors.
_FIRST, _LAST = 1.0, 0.05
#: Fraction of the steps over which exploration decreases.
_EXPLORATION = 0.4


class Actors:
    """Actor processes, each with its own ring, and one board. A dead actor is replaced and continues its ring.

    :param folder: folder of rings and board, best in memory
    :param count: number of actors
    :param steps: total number of transitions
    :param model: the model whose policy they play
    :param seed: seed of the games
    """

    def __init__(self, folder: Path, count: int, steps: int, model: DQN, seed: int) -> None:
        record = transition_record(model.observation_space, model.action_space)
        self.rings = [Ring.create(folder / f"ring{number}", record, _SLOTS) for number in range(count)]
        self.board = Board.create(folder / "board", len(weights(model)))
        self.publish(model)
        self._share = steps // count
        self._seed = seed
        self._processes = [self._start(number) for number in range(count)]
        #: Number of replaced actors.
        self.replaced = 0

    def publish(self, model: DQN) -> None:
        """Publish the weights of the model."""
        self.board.write(weights(model))

    def watch(self) -> None:
        """Replace dead actors."""
        for number, process in enumerate(self._processes):
            if not process.is_alive() and not self.rings[number].is_ended:
                self._processes[number] = self._start(number)
                self.replaced += 1

    def kill(self, number: int) -> None:
        """Kill an actor."""
        self._processes[number].kill()
        self._processes[number].join()

    def stop(self) -> None:
        """End all actors."""
        for process in self._processes:
            process.terminate()
            process.join()

    def _start(self, number: int) -> BaseProcess:
        arguments = self.rings[number], self.board, self._share, self._seed + number
        process = multiprocessing.get_context("spawn").Process(target=play, args=arguments, daemon=True)
        process.start()
        return process


def play(ring: Ring, board: Board, steps: int, seed: int) -> None:
    """An actor: play with the latest weights, and put every transition into the ring.

    :param ring: receives the transitions
    :param board: has the weights
    :param steps: number of transitions
    :param seed: seed of the games
    """
    th.set_num_threads(1)
    model = make_learner(1, seed, ReplayBuffer, {}, games=1)
    env = model.get_env()
    assert env is not None
    obs: Any = env.reset()
    known, record = 0, np.zeros((), ring.record)
    while ring.written < steps:
        latest = board.read(newer_than=known)
        if latest is not None:
            known = latest[0]
            load_weights(model, latest[1])
        progress = ring.written / (_EXPLORATION * steps)
        model.exploration_rate = max(_FIRST - (_FIRST - _LAST) * progress, _LAST)
        action, _ = model.predict(obs)
        following: Any
        following, reward, done, infos = env.step(action)
        record["obs"], record["action"], record["reward"], record["done"] = obs[0], action[0], reward[0], done[0]
        record["next_obs"] = infos[0]["terminal_observation"] if done[0] else following[0]
        record["timeout"] = infos[0].get("TimeLimit.truncated", False)
        ring.put(record)
        obs = following
    ring.end()


def weights(model: DQN) -> bytes:
    """Weights of the network that chooses actions."""
    found: bytes = th.nn.utils.parameters_to_vector(model.q_net.parameters()).detach().numpy().tobytes()
    return found


def load_weights(model: DQN, content: bytes) -> None:
    """Set the weights of the network that chooses actions."""
    vector = th.from_numpy(np.frombuffer(content, np.float32).copy())
    th.nn.utils.vector_to_parameters(vector, model.q_net.parameters())
