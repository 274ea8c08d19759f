"""Watch a saved model play an Atari game: in a window, as a video, or unseen."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch as th

from examples.playing import Trained, add_playing_options, show_returns
from examples.training_options import env_id
from sb3_extra_buffers.errors import MissingExtraError
from sb3_extra_buffers.training_utils.atari import make_env
from sb3_extra_buffers.training_utils.eval_model import eval_model

if TYPE_CHECKING:
    from sb3_extra_buffers.recording import RecordBuffer

_FRAMES_PER_SECOND = 15  # of the game's 60, the agent sees every fourth
_SCREEN = (210, 160)
_LONGEST_VIDEO = 20_000


def add_watching_options(parser: argparse.ArgumentParser) -> None:
    """Offer what everybody takes who watches."""
    add_playing_options(parser, episodes=5)
    render = "in a window, as a video, or unseen (default: human)"
    parser.add_argument("--render", choices=("human", "video", "none"), help=render)
    video = "where to write the video, .mp4 or .gif (default: %(default)s)"
    parser.add_argument("--video", type=Path, metavar="FILE", default=Path("watched.mp4"), help=video)
    parser.add_argument("--quick", action="store_true", help="one episode, unseen, unless other options say more")


def watch(trained: Trained, folder: Path, game: str, device: th.device, options: argparse.Namespace) -> None:
    """Load, play, print what the episodes returned.

    :param trained: what to load
    :param folder: where it was saved
    :param game: what it plays
    :param device: where it computes
    :param options: of the command line
    """
    model = trained.load(folder, device)
    episodes = options.episodes or (1 if options.quick else 5)
    render = options.render or ("none" if options.quick else "human")
    emulator: dict[str, Any] = {"render_mode": "human"} if render == "human" else {}
    env = make_env(env_id(game), 1, seed=options.seed, **emulator)
    recorder = _recorder() if render == "video" else None
    # One observation at a time: a second thread would only make the first one wait.
    th.set_num_threads(1)
    # As Stable-Baselines3's zoo does for Atari: always the same action in the same place can go on for ever.
    returns, _ = eval_model(episodes, env, model, buffer=recorder, deterministic=False, record_frames="render")
    show_returns(returns)
    if recorder is not None:
        print(recorder.to_video(options.video, fps=_FRAMES_PER_SECOND))


def _recorder() -> RecordBuffer:
    try:
        from sb3_extra_buffers.recording import RecordBuffer

        import_module("av")  # better found missing before the game than after it
    except ImportError as error:
        raise MissingExtraError("A video", error.name or "av", "video", "sb3-extra-buffers-recording") from error
    return RecordBuffer(_SCREEN, ch_num=3, size=_LONGEST_VIDEO)
