"""An environment whose observations say where they come from, and a model that acts by them.

The observation at any moment is ``(number of the environment, episode, step)``; so each stored transition can be held
against what must have happened, whatever the order in which it was stored.
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

ACTIONS = 5


def length(env, episode):
    """How many steps an episode has."""
    return 2 + (5 * env + 3 * episode) % 7


def is_timeout(env, episode):
    """Whether it is cut off, instead of coming to its end."""
    return (env + episode) % 3 == 1


def reward(env, episode, step):
    return float(1000 * env + 50 * episode + step)


def score(env, episode):
    return sum(reward(env, episode, step) for step in range(length(env, episode)))


def action(env, episode, step):
    return (env + episode + 2 * step) % ACTIONS


def picture(env, episode, step):
    """An image that differs from that of every other moment, with runs in it."""
    image = np.full((12, 12, 1), step, np.uint8)
    image[:4], image[4:6, 3:9] = env, episode
    return image


class ScriptedEnv(gym.Env):
    """Plays episodes of known lengths."""

    render_mode = "rgb_array"

    def __init__(self, number, is_dict=False):
        self.number, self.is_dict, self.episode, self.now = number, is_dict, -1, 0
        place = spaces.Box(0, 10_000, (3,), np.int32)
        image = spaces.Box(0, 255, (12, 12, 1), np.uint8)
        self.observation_space = spaces.Dict({"place": place, "image": image}) if is_dict else place
        self.action_space = spaces.Discrete(ACTIONS)

    def _observation(self):
        moment = (self.number, self.episode, self.now)
        place = np.array(moment, np.int32)
        return {"place": place, "image": picture(*moment)} if self.is_dict else place

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.now = self.episode + 1, 0
        return self._observation(), {}

    def step(self, chosen):
        moment = (self.number, self.episode, self.now)
        assert chosen == action(*moment)
        self.now += 1
        over = self.now == length(*moment[:2])
        late = is_timeout(*moment[:2])
        return self._observation(), reward(*moment), over and not late, over and late, {}

    def render(self):
        return picture(self.number, self.episode, self.now)


class ScriptedModel:
    """Acts by the script, and remembers whether it was asked as Stable-Baselines3 asks."""

    def __init__(self):
        self.asked = set()

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        places = observation["place"] if isinstance(observation, dict) else observation
        self.asked.add(deterministic)
        assert np.array_equal(episode_start, places[:, 2] == 0)
        # The state counts calls, as that of a recurrent policy would go on.
        state = (np.zeros(len(places), int),) if state is None else state
        counts = np.where(episode_start, 0, state[0])
        assert np.array_equal(counts, places[:, 2])
        return np.array([action(*place) for place in places.tolist()]), (counts + 1,)


def scripted_envs(count, *, is_dict=False, wrap=Monitor):
    """So many environments; ``wrap`` is applied to each."""
    return DummyVecEnv([lambda number=number: wrap(ScriptedEnv(number, is_dict)) for number in range(count)])


def played(shares):
    """Every moment of the first episodes of each environment, as many as its share."""
    return {
        (env, episode, step)
        for env, share in enumerate(shares)
        for episode in range(share)
        for step in range(length(env, episode))
    }
