"""Every error says what it must, survives a pipe and can be caught as the built-in that it resembles."""

import pickle

import pytest

from sb3_extra_buffers import errors
from sb3_extra_buffers.errors import (
    BufferStateError,
    CellMismatchError,
    DeviceError,
    ExtraBuffersError,
    FileContentError,
    FileDamagedError,
    FileMissingError,
    FileReadError,
    FileVersionError,
    FileWriteError,
    ForeignFileError,
    HeapFullError,
    HeapStateError,
    MissingExtraError,
    ObservationError,
    ParameterError,
    PayloadError,
    PluginConflictError,
    PluginLoadError,
    PluginProtocolError,
    UnknownPluginError,
)
from sb3_extra_buffers.errors.install import install_command

EXAMPLES = [
    (
        ParameterError("codec 'zstd'", "level", 99, "levels: 1 to 22", "Try 3."),
        ValueError,
        ["zstd", "99", "1 to 22", "Try 3"],
    ),
    (CellMismatchError("rle", "out", "3 bytes long", "4 bytes"), ValueError, ["rle", "out", "3 bytes", "4 bytes"]),
    (PayloadError("gzip", 12, "it ends too early", 7), ValueError, ["gzip", "12", "too early", "payload 7"]),
    (
        UnknownPluginError("codec", "zst", ("none", "zstd"), "Did you mean 'zstd'?"),
        LookupError,
        ["zst", "none, zstd", "mean"],
    ),
    (
        PluginLoadError("codec", "bad", "pkg 1.0", "OSError: no"),
        ImportError,
        ["bad", "pkg 1.0", "OSError: no", "Reinstall pkg or"],
    ),
    (PluginConflictError("heap", "ring", ("a 1", "b 2")), RuntimeError, ["ring", "a 1", "b 2", "Uninstall"]),
    (
        PluginProtocolError("codec", "x", "p 1", "protocol 2", "protocol 1", "Upgrade."),
        TypeError,
        ["protocol 2", "Upgrade"],
    ),
    (HeapFullError("ring", 10, 5, "More."), MemoryError, ["ring", "10", "5", "More"]),
    (HeapStateError("ring", "commit", "nothing is reserved"), RuntimeError, ["ring", "commit", "nothing is reserved"]),
    (
        BufferStateError("CompressedReplayBuffer", "sample 32 transitions", "the buffer is empty", "Collect some."),
        ValueError,
        ["CompressedReplayBuffer", "sample 32", "empty", "Collect some"],
    ),
    (
        ObservationError("CompressedReplayBuffer", "obs", "of shape (3,)", "shape (4,)", "One for each."),
        ValueError,
        ["CompressedReplayBuffer", "obs is of shape (3,)", "shape (4,)", "One for each"],
    ),
    (
        MissingExtraError("Plots", "matplotlib", "cli"),
        ImportError,
        ["matplotlib", f"Run: {install_command('sb3-extra-buffers', 'cli')}"],
    ),
    (
        MissingExtraError("to_video", "av", "video", "sb3-extra-buffers-recording"),
        ImportError,
        ["to_video", "'av'", f"Run: {install_command('sb3-extra-buffers-recording', 'video')}"],
    ),
    (
        MissingExtraError("to_minari", "minari", "minari", "sb3-extra-buffers-recording", "It needs Python 3.11."),
        ImportError,
        ["to_minari", "'minari'", "not installed. It needs Python 3.11. Run: pip install"],
    ),
    (
        MissingExtraError("to_minari", "minari", "", hint="It needs Python 3.11."),
        ImportError,
        ["to_minari needs the package 'minari', which is not installed. It needs Python 3.11."],
    ),
    (
        FileWriteError("a/b.mp4", "to_video", "there is no folder 'a'", "Make it first."),
        OSError,
        ["to_video", "a/b.mp4", "no folder 'a'", "Make it first"],
    ),
    (
        FileReadError("a.bin", "Too many open files", "Close some."),
        OSError,
        ["a.bin cannot be opened", "Too many open files", "Close some"],
    ),
    (FileMissingError("a.bin", "Look elsewhere."), FileNotFoundError, ["a.bin does not exist", "Look elsewhere"]),
    (ForeignFileError("a.bin", "it begins with b'PK'", "Unzip it."), ValueError, ["a.bin", "PK", "Unzip it"]),
    (FileVersionError("a.bin", 7, 1), ValueError, ["a.bin", "version 7", "up to 1", "pip install --upgrade"]),
    (
        FileDamagedError("a.bin", tuple(f"block {number}" for number in range(10))),
        ValueError,
        ["a.bin", "block 0; block 1", "block 7; and 2 more", "another copy"],
    ),
    (
        FileContentError("a.bin", "a recording", "a checkpoint", "Use load()."),
        ValueError,
        ["a.bin: expected a recording, found a checkpoint.", "Use load()"],
    ),
    (DeviceError("cuda:7", "it is absent"), RuntimeError, ["cuda:7", "absent"]),
]
IDS = [type(error).__name__ for error, _, _ in EXAMPLES]


@pytest.mark.parametrize(("error", "builtin", "words"), EXAMPLES, ids=IDS)
def test_message_holds_the_facts_and_the_next_step(error, builtin, words):
    for word in words:
        assert word in str(error)
    assert isinstance(error, builtin)
    assert isinstance(error, ExtraBuffersError)


@pytest.mark.parametrize(("error", "builtin", "words"), EXAMPLES, ids=IDS)
def test_pickling_keeps_type_fields_and_message(error, builtin, words):
    copy = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(error))))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


def test_every_public_error_is_in_the_drawing_and_in_the_examples():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ExtraBuffersError)]
    assert {type(error) for error, _, _ in EXAMPLES} == {kind for kind in kinds if not kind.__subclasses__()}
    assert all(kind.__name__ in errors.__doc__ for kind in kinds)
