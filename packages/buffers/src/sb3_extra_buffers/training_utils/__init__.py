"""Helpers around training: Atari environments, evaluation that fills buffers, and warm-up.

Import from the modules: ``from sb3_extra_buffers.training_utils.eval_model import eval_model``.
"""

from importlib.util import find_spec

from sb3_extra_buffers.errors import MissingExtraError

if find_spec("stable_baselines3") is None:
    raise MissingExtraError("sb3_extra_buffers.training_utils", "stable-baselines3", "sb3")
