"""An environment whose images show the number of the step."""

import gymnasium
import numpy as np
from gymnasium import spaces


class CountingEnv(gymnasium.Env):
    """Every image has one shade: 16 times the number of the episode plus the number of the step.

    Rendered images are larger than observations, and brighter by 100. The reward is the action plus the number of the
    step.

    :param ends: lengths of the episodes, in turn
    :param truncated: whether they are truncated, in turn
    :param shape: shape of the image in an observation
    :param kind: kind of observations: ``"box"`` or ``"dict"``
    :param shared: whether all observations share one array
    :param vector: whether actions are vectors
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self,
        ends=(3, 5),
        truncated=(False,),
        shape=(40, 36, 1),
        kind="box",
        render_mode=None,
        shared=False,
        vector=False,
    ):
        self.ends, self.truncated, self.kind, self.render_mode = ends, truncated, kind, render_mode
        image = spaces.Box(0, 255, shape, np.uint8)
        self.observation_space = image
        if kind == "dict":
            self.observation_space = spaces.Dict({"image": image, "speed": spaces.Box(-1, 1, (2,), np.float32)})
        self.action_space = spaces.Box(-2, 2, (2,), np.float32) if vector else spaces.Discrete(4)
        self.array = np.zeros(shape, np.uint8) if shared else None
        self.shape, self.episode, self.count = shape, -1, 0

    @property
    def shade(self):
        return (16 * self.episode + self.count) % 256

    def observe(self):
        if self.array is not None:
            self.array[...] = self.shade
            image = self.array
        else:
            image = np.full(self.shape, self.shade, np.uint8)
        return {"image": image, "speed": np.zeros(2, np.float32)} if self.kind == "dict" else image

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.count = self.episode + 1, 0
        return self.observe(), {"health": 100}

    def step(self, action):
        self.count += 1
        is_over = self.count == self.ends[self.episode % len(self.ends)]
        is_cut = is_over and self.truncated[self.episode % len(self.truncated)]
        reward = float(np.sum(action)) + self.count
        return self.observe(), reward, is_over and not is_cut, is_cut, {"health": 100 - self.count}

    def render(self):
        return np.full((50, 60, 3), (100 + self.shade) % 256, np.uint8)
