"""What both kinds of stores refuse."""

from __future__ import annotations

import torch as th

from sb3_extra_buffers.errors import ObservationError, ParameterError


def check_place(owner: str, pos: int, env_idx: int, shape: tuple[int, int]) -> None:
    """Refuse a place that a store does not have.

    :param owner: the store, for the error
    :param pos: the step
    :param env_idx: the environment
    :param shape: how many there are of both
    """
    for name, value, count in (("pos", pos, shape[0]), ("env_idx", env_idx, shape[1])):
        if not 0 <= value < count:
            raise ParameterError(owner, name, value, f"it must be from 0 to {count - 1}")


def as_observation(owner: str, value: th.Tensor, flat_len: int, dtype: th.dtype, device: th.device) -> th.Tensor:
    """An observation as it is stored, or an error: nothing is cast in silence.

    :param owner: the store, for the error
    :param value: what was given
    :param flat_len: how many elements there must be
    :param dtype: of what dtype
    :param device: where they are wanted
    """
    if value.numel() != flat_len:
        raise ObservationError(owner, "flat_tensor", f"{value.numel()} elements", f"{flat_len} elements")
    # A flat view may still have a stride, and kernels take addresses: they would read what lies between.
    flat = value.detach().reshape(-1).contiguous()
    if flat.dtype != dtype:
        cast = flat.to(dtype)
        if not th.equal(cast.to(flat.dtype), flat):
            raise ObservationError(owner, "flat_tensor", f"values of {flat.dtype}", f"what {dtype} can hold")
        flat = cast
    return flat.to(device)
