"""The tests of buffers save images of batches for people, who may say no; CI never does."""

import numpy as np
import pytest
import torch as th


def batch(seed):
    return th.as_tensor(np.random.default_rng(seed).integers(0, 256, (9, 4, 12, 10), np.uint8))


def test_the_first_images_of_a_batch_are_saved_as_they_are(save_images, tmp_path):
    cv2 = pytest.importorskip("cv2")
    samples, path = batch(0), tmp_path / "new" / "images.png"
    samples[0, 0, 0, 0] = 255  # so that the shades stay
    save_images({"vec": th.zeros(9, 3), "image": samples}, path, environ={})
    found = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert found.shape == (8 * 12, 4 * 10)
    assert (found[12:24, 20:30] == samples[1, 2].numpy()).all()
    assert [file.name for file in path.parent.iterdir()] == ["images.png"]


def test_each_file_is_saved_once_by_a_process(save_images, tmp_path):
    path = tmp_path / "images.png"
    save_images(batch(0), path, environ={})
    first = path.read_bytes()
    save_images(batch(1), path, environ={})
    assert path.read_bytes() == first


@pytest.mark.parametrize("environ", [{"DISABLE_TEST_OBSERVATIONS_SAVE": yes} for yes in ("true", "1", "YES", "on")])
def test_nothing_is_saved_if_the_environment_says_no(save_images, tmp_path, environ):
    save_images(batch(0), tmp_path / "images.png", environ)
    assert not list(tmp_path.iterdir())


def test_nothing_is_saved_in_ci(save_images, tmp_path):
    save_images(batch(0), tmp_path / "images.png", {"CI": "true"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("no", ["", "0", "false"])
def test_a_variable_that_is_not_true_does_not_say_no(save_images, tmp_path, no):
    save_images(batch(0), tmp_path / "images.png", {"DISABLE_TEST_OBSERVATIONS_SAVE": no, "CI": no})
    assert (tmp_path / "images.png").exists()
