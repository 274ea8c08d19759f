"""An evaluation records into every kind of record buffer."""

import numpy as np
import pytest
from scripted_play import ScriptedModel, action, is_timeout, length, picture, reward, scripted_envs

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.recording import DummyRecordBuffer, FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.training_utils.buffer_warmup import warm_up
from sb3_extra_buffers.training_utils.eval_model import eval_model

MOMENTS = [(0, episode, step) for episode in range(3) for step in range(length(0, episode))]


@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer])
def test_what_was_recorded_is_what_happened(kind):
    # B10: the published function refused its own record buffers.
    record = kind(res=(12, 12), ch_num=1, size=100)
    eval_model(6, scripted_envs(2), ScriptedModel(), buffer=record, record_frames="render")
    assert [list(episode) for episode in record.episodes] == [
        [index for index, moment in enumerate(MOMENTS) if moment[1] == episode] for episode in range(3)
    ]
    clip = record.read(0, len(record))
    assert clip.rewards.tolist() == [reward(*moment) for moment in MOMENTS]
    assert clip.actions.ravel().tolist() == [action(*moment) for moment in MOMENTS]
    assert clip.dones.tolist() == [step + 1 == length(env, episode) for env, episode, step in MOMENTS]
    if kind is RecordBuffer:
        assert np.array_equal(clip.frames, [picture(*moment) for moment in MOMENTS])


def test_several_recordings_are_made_at_once():
    records = [RecordBuffer(res=(12, 12), ch_num=1, size=100), DummyRecordBuffer()]
    _, seconds = eval_model(6, scripted_envs(2), ScriptedModel(), buffer=records, record_frames="render")
    assert [len(record) for record in records] == [len(MOMENTS)] * 2
    assert len(seconds) == 2


def test_a_warm_up_is_recorded_beside_a_buffer_and_alone():
    env = scripted_envs(2)
    buffer = CompressedReplayBuffer(200, env.observation_space, env.action_space, device="cpu", n_envs=2)
    film, other = (RecordBuffer(res=(12, 12), ch_num=1, size=100) for _ in range(2))
    _, seconds = warm_up([buffer, film], 2, env, ScriptedModel(), 6, record_frames="render")
    assert len(seconds) == 2
    warm_up(other, 1, scripted_envs(2), ScriptedModel(), 6, record_frames="render")
    for record in (film, other):
        assert np.array_equal(record[:].frames, [picture(*moment) for moment in MOMENTS])


@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer])
def test_a_recording_with_one_feature_tells_ends_from_what_was_cut_off(kind):
    record = kind(res=(12, 12), ch_num=1, size=100, dtypes=["uint8", "float64", "bool"])
    eval_model(6, scripted_envs(2), ScriptedModel(), buffer=record, record_frames="render")
    clip = record[:]
    assert (
        clip.features[clip.dones, 0].tolist()
        == [is_timeout(0, episode) for episode in range(3)]
        == [False, True, False]
    )
    assert not clip.features[~clip.dones].any()
