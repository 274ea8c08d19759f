"""Doom as an environment: pictures, masks of object classes, or both."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.errors import MissingExtraError, ParameterError

#: Classes of the pixels of a mask. Walls and floors are 0 and 1 in the labels buffer; the others are categories of
#: ViZDoom, some of them merged.
CLASSES = ("wall", "floor, ceiling", "self", "monster", "item", "weapon", "shot, blood", "corpse", "other")
_CLASS_OF_CATEGORY = {
    "Self": 2,
    "Monster": 3,
    **dict.fromkeys(("Ammo", "Armor", "Artifact", "Health", "Key", "Powerup"), 4),
    "Weapon": 5,
    **dict.fromkeys(("Explosive", "Gibs", "SFX"), 6),
    "Gore": 7,
}
#: Value of each class in a mask: as far apart as possible, so that masks are visible and can be learnt from.
SHADES = np.linspace(0, 255, len(CLASSES)).astype(np.uint8)
OBSERVATIONS = ("mask", "rgb", "both")
WIDTH, HEIGHT = 160, 120


class DoomEnv(gymnasium.Env[Any, np.int64]):
    """
    A scenario of ViZDoom, without a window. An action is one button, held for some frames.

    Masks have shape ``(120, 160, 1)``, pictures ``(120, 160, 3)``, both of bytes. ViZDoom has no picture after the end
    of an episode, so the last observation is repeated.

    :param scenario: a scenario of ViZDoom, such as ``"deadly_corridor"`` or ``"defend_the_center"``
    :param observe: ``"mask"``, ``"rgb"``, or ``"both"`` for a Dict with these two keys
    :param frame_skip: frames for which a button is held
    """

    def __init__(self, scenario: str = "deadly_corridor", observe: str = "mask", frame_skip: int = 4) -> None:
        if observe not in OBSERVATIONS:
            raise ParameterError("DoomEnv", "observe", observe, f"it must be one of {', '.join(OBSERVATIONS)}")
        self._game = _game(scenario)
        self._folder = TemporaryDirectory()  # for the settings file that the game writes
        self._game.set_doom_config_path(str(Path(self._folder.name, "vizdoom.ini")))
        self._observe = observe
        self._frame_skip = frame_skip
        channels = {"mask": 1, "rgb": 3}
        boxes = {key: spaces.Box(0, 255, (HEIGHT, WIDTH, count), np.uint8) for key, count in channels.items()}
        self.observation_space = spaces.Dict(dict(boxes)) if observe == "both" else boxes[observe]
        self._buttons = np.eye(len(self._game.get_available_buttons()), dtype=np.float64)
        self.action_space = spaces.Discrete(len(self._buttons))
        self._seen: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        :param seed: seed of this and the following episodes
        :param options: not used
        """
        super().reset(seed=seed, options=options)
        self._game.set_seed(int(self.np_random.integers(2**31)))
        if self._game.is_running():
            self._game.new_episode()
        else:
            self._game.init()
        self._look()
        return self._seen, {}

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold a button.

        :param action: its number in the scenario
        """
        reward = self._game.make_action(self._buttons[int(action)], self._frame_skip)
        over = self._game.is_episode_finished()
        timeout = over and self._game.is_episode_timeout_reached()
        if not over:
            self._look()
        return self._seen, float(reward), over and not timeout, timeout, {}

    def close(self) -> None:
        """End the game and its process."""
        self._game.close()
        self._folder.cleanup()

    def _look(self) -> None:
        state = self._game.get_state()
        views = {}
        if self._observe != "rgb":
            views["mask"] = mask_of(state.labels_buffer, {label.value: label.object_category for label in state.labels})
        if self._observe != "mask":
            views["rgb"] = state.screen_buffer.copy()
        self._seen = views if self._observe == "both" else views[self._observe]


def mask_of(labels_buffer: NDArray[np.uint8], categories: dict[int, str]) -> NDArray[np.uint8]:
    """Mask of a frame: the shade of each pixel's class, with a channel axis.

    :param labels_buffer: number of the object of each pixel
    :param categories: categories of these objects; numbers change with every frame
    """
    shades = np.full(256, SHADES[-1])
    shades[:2] = SHADES[:2]
    for value, category in categories.items():
        shades[value] = SHADES[_CLASS_OF_CATEGORY.get(category, len(CLASSES) - 1)]
    return shades[labels_buffer][..., np.newaxis]


def _game(scenario: str) -> Any:
    try:
        import vizdoom
    except ImportError as error:
        raise MissingExtraError("Playing Doom", "vizdoom", "vizdoom") from error
    file = Path(vizdoom.scenarios_path, f"{scenario}.cfg")
    if not file.is_file():
        known = ", ".join(sorted(path.stem for path in file.parent.glob("*.cfg")))
        raise ParameterError("DoomEnv", "scenario", scenario, f"it must be one of {known}")
    game = vizdoom.DoomGame()
    game.load_config(str(file))
    # Without axes such as those of a mouse.
    game.set_available_buttons([button for button in game.get_available_buttons() if "DELTA" not in button.name])
    game.set_window_visible(False)
    game.set_mode(vizdoom.Mode.PLAYER)
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    game.set_labels_buffer_enabled(True)
    game.set_render_hud(False)  # the labels buffer does not have it
    return game
