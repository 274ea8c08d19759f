"""Helpers for training: Atari environments, evaluation that fills buffers, and warm-up.

Import from the modules: ``from sb3_extra_buffers.training_utils.eval_model import eval_model``.
"""
