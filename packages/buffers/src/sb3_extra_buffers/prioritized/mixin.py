"""``PrioritizedReplay``: gives importance weights and TD errors to off-policy algorithms of Stable-Baselines3."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from operator import getitem
from types import FunctionType, MethodType
from typing import Any

import torch as th
from gymnasium import spaces
from torch.nn import functional

from sb3_extra_buffers.compressed import CompressedDictPrioritizedReplayBuffer, CompressedPrioritizedReplayBuffer
from sb3_extra_buffers.errors import BufferStateError, ParameterError

#: Losses of torch that compare estimates with targets.
_TORCH_LOSSES = frozenset({"smooth_l1_loss", "mse_loss", "huber_loss", "l1_loss"})
#: Losses that modules import by name.
_LOSSES = frozenset({"quantile_huber_loss"})


class PrioritizedReplay:
    """Mixin for off-policy algorithms: trains with importance weights, and sets priorities to absolute TD errors::

        class PrioritizedSAC(PrioritizedReplay, SAC): ...

    ``train()`` of the algorithm is not copied. It runs with its own code, but its loss functions are replaced by hooks
    that multiply the gradient of each estimate with its weight, and note the TD error. The value of the loss, which is
    logged, is that of the algorithm, without weights. Nothing outside of this call is changed, in no thread.

    The TD error of several critics is the mean of theirs; that of quantiles is the difference of their means.

    A ``train()`` of your own works if it calls a loss of ``torch.nn.functional`` by a global name such as ``F``, or
    sb3-contrib's ``quantile_huber_loss``, once per batch and critic, with the estimates first and the targets second.
    If there is no such call, training ends with an error.
    """

    def _setup_model(self) -> None:
        model: Any = self
        n_steps = getattr(model, "n_steps", 1)
        if model.replay_buffer_class is None:
            is_dict = isinstance(model.observation_space, spaces.Dict)
            model.replay_buffer_class = (
                CompressedDictPrioritizedReplayBuffer if is_dict else CompressedPrioritizedReplayBuffer
            )
            if n_steps > 1:
                given = {"n_steps": n_steps, "gamma": model.gamma}
                model.replay_buffer_kwargs = {**given, **model.replay_buffer_kwargs}
        if not hasattr(model.replay_buffer_class, "update_priorities"):
            allowed, name = "it must have update_priorities()", model.replay_buffer_class.__name__
            hint = "Leave replay_buffer_class out, or use CompressedPrioritizedReplayBuffer."
            raise ParameterError(type(self).__name__, "replay_buffer_class", name, allowed, hint)
        with warnings.catch_warnings():
            if model.replay_buffer_kwargs.get("n_steps") == n_steps:
                # Stable-Baselines3 does not know that this class has n-step returns.
                warnings.filterwarnings("ignore", "`n_steps=", UserWarning)
            super()._setup_model()  # type: ignore[misc]

    def train(self, gradient_steps: int, batch_size: int | None = None) -> None:
        """Train as the algorithm does, with weights, and set the priorities of each batch.

        :param gradient_steps: Number of batches
        :param batch_size: Number of transitions of each; default: that of the algorithm
        """
        model: Any = self
        given = {} if batch_size is None else {"batch_size": batch_size}
        buffer, name = model.replay_buffer, type(self).__name__
        if not hasattr(buffer, "update_priorities"):  # somebody has replaced it
            found, hint = f"{type(buffer).__name__} has no priorities", "Use CompressedPrioritizedReplayBuffer."
            raise BufferStateError(name, "train", found, hint)
        sampler = _Sampler(name, buffer, model._current_progress_remaining)
        train = _hooked(super().train, sampler)  # type: ignore[misc]
        try:
            model.replay_buffer = sampler
            train(gradient_steps=gradient_steps, **given)
            sampler.finish()
        finally:
            model.replay_buffer = buffer


class _Sampler:
    """Stands for the replay buffer during ``train()``: remembers the last batch, and sets its priorities."""

    def __init__(self, owner: str, buffer: Any, progress_remaining: float) -> None:
        self._owner = owner
        self._buffer = buffer
        self._progress_remaining = progress_remaining
        self._batch: Any = None
        #: TD errors that losses have noted for the batch, one tensor for each critic.
        self._td_errors: list[th.Tensor] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._buffer, name)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another thread may save the replay buffer of the model: a pickle holds the buffer itself.
        return getitem, ([self._buffer], 0)

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        """Set the priorities of the last batch, and draw the next one."""
        self.finish()
        self._batch = self._buffer.sample(*args, **kwargs)
        return self._batch

    def finish(self) -> None:
        """Set the priorities of the last batch, if there is one."""
        batch, self._batch = self._batch, None
        errors, self._td_errors = self._td_errors, []
        if batch is None:
            return
        if not errors:
            found = "train() has used no loss that can be weighted"
            hint = "It must call F.smooth_l1_loss, F.mse_loss or quantile_huber_loss itself, once per batch and critic."
            raise BufferStateError(self._owner, "set priorities", found, hint)
        td_errors = th.stack(errors).mean(dim=0)
        self._buffer.update_priorities(batch.leaf_nodes_indices, td_errors, self._progress_remaining)

    def weigh(self, estimates: th.Tensor, targets: th.Tensor) -> th.Tensor:
        """The estimates, with gradients that are multiplied by the weights of the batch. Notes the TD errors."""
        batch = self._batch
        if batch is None or not estimates.requires_grad or len(estimates) != len(batch.weights):
            return estimates  # another loss
        with th.no_grad():
            means = (part.detach().reshape(len(estimates), -1).mean(dim=1) for part in (estimates, targets))
            self._td_errors.append(th.sub(*means).abs())
        weights = batch.weights.reshape(-1, *[1] * (estimates.ndim - 1))
        weighed: th.Tensor = _WeighedGradient.apply(estimates, weights)  # type: ignore[no-untyped-call]
        return weighed


class _WeighedGradient(th.autograd.Function):
    """The identity, whose gradient is multiplied by weights.

    The loss of a batch is a sum over its transitions, so this is the gradient of the weighted loss.
    """

    @staticmethod
    def forward(ctx: Any, values: th.Tensor, weights: th.Tensor) -> th.Tensor:
        ctx.save_for_backward(weights)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: th.Tensor) -> tuple[th.Tensor, None]:
        (weights,) = ctx.saved_tensors
        return gradient * weights, None


class _Functional:
    """``torch.nn.functional`` with other losses."""

    def __init__(self, hook: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        found = getattr(functional, name)
        return self._hook(found) if name in _TORCH_LOSSES else found


def _hooked(train: MethodType, sampler: _Sampler) -> Callable[..., None]:
    """A method with the same code, for which the losses among its global names are others."""

    def hook(loss: Callable[..., Any]) -> Callable[..., Any]:
        def weighted(input: th.Tensor, target: th.Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
            return loss(sampler.weigh(input, target), target, *args, **kwargs)

        return weighted

    function: Any = train.__func__
    names = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if value is functional:
            names[name] = _Functional(hook)
        elif name in _LOSSES:
            names[name] = hook(value)
    twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    return MethodType(twin, train.__self__)
