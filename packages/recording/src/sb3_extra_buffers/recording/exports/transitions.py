"""Steps of an episode as what offline learning wants: observations, and the actions between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.exports.tables import feature_columns


@dataclass(frozen=True)
class Transitions:
    """An episode of ``n`` actions and ``n + 1`` observations.

    :param observations: shape ``(n + 1, H, W, C)``
    :param actions: shape ``(n, ...)``
    :param rewards: shape ``(n,)``
    :param terminations: shape ``(n,)``: whether the episode came to its end
    :param truncations: shape ``(n,)``: whether it was cut off
    :param infos: shape ``(n + 1, 1)``: a value for each observation, by the name of the feature
    """

    observations: NDArray[Any]
    actions: NDArray[Any]
    rewards: NDArray[Any]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    infos: dict[str, NDArray[Any]]


def cut(clip: Clip, terminal_frames: bool, truncation_feature: int | None, feature: str) -> Transitions:
    """Put each action between two observations.

    :param clip: all steps of an episode
    :param terminal_frames: whether the last step of a finished episode is nothing but its last frame
    :param truncation_feature: number of the feature that says that the episode was cut off
    :param feature: what exports, for the error
    """
    assert clip.frames is not None
    infos = dict(feature_columns(clip))
    cut_off = _cut_off(clip, infos, truncation_feature, feature)
    is_done, is_cut_off = bool(clip.dones[-1]), bool(cut_off[-1])
    seen = np.arange(len(clip))
    acted = seen[:-1]
    if is_done and not is_cut_off and not terminal_frames:
        acted, seen = seen, np.append(seen, seen[-1])
    terminations = np.zeros(len(acted), np.bool_)
    # Minari has no unfinished episodes: what comes behind the last step was cut off.
    terminations[-1:] = is_done and not is_cut_off
    truncations = np.zeros(len(acted), np.bool_)
    truncations[-1:] = not is_done or is_cut_off
    return Transitions(
        np.ascontiguousarray(clip.frames[seen]),
        clip.actions[acted],
        clip.rewards[acted],
        terminations,
        truncations,
        # With an axis more: Minari 0.5.4 writes infos of one axis so that it cannot read them.
        {name: np.ascontiguousarray(values[seen, np.newaxis]) for name, values in infos.items()},
    )


def _cut_off(
    clip: Clip, infos: dict[str, NDArray[Any]], truncation_feature: int | None, feature: str
) -> NDArray[np.bool_]:
    if truncation_feature is None:
        return np.zeros(len(clip), np.bool_)
    name = f"feature_{truncation_feature}"
    if name not in infos:
        allowed = f"steps have {len(infos)} features" if infos else "steps have no features"
        raise ParameterError(feature, "truncation_feature", truncation_feature, allowed)
    return infos[name].astype(np.bool_)
