"""Tests of one nox session are skipped by name elsewhere; sampled observations can be kept for people to look at."""

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: Folders whose tests hold in the environment of the session of the same name, and in no other.
SESSIONS = ("browser", "combos", "lowest", "minimal", "outsider", "wheels")


class OfAnotherSession(pytest.Module):
    """A module that is not imported, since what it needs is missing here."""

    def collect(self):
        session = self.path.relative_to(TESTS).parts[0]
        pytest.skip(f"needs what the session {session!r} prepares. Run: nox -s {session}")


def pytest_pycollect_makemodule(module_path, parent):
    folder = module_path.relative_to(TESTS).parts[0]
    if folder in SESSIONS and os.environ.get("NOX_CURRENT_SESSION") != folder:
        return OfAnotherSession.from_parent(parent, path=module_path)
    return None


@pytest.fixture
def keep_observations(request):
    """Save a few observations of a batch as pictures in debug_obs, unless the environment says no."""

    def keep(batch):
        refused = os.environ.get("DISABLE_TEST_OBSERVATIONS_SAVE", "").lower() in ("1", "true", "yes", "on")
        if refused or "CI" in os.environ or "NOX_CURRENT_SESSION" in os.environ:
            return
        image = pytest.importorskip("PIL.Image")
        folder = Path("debug_obs")
        folder.mkdir(exist_ok=True)
        for number, stack in enumerate(batch[:4]):
            frames = stack.transpose(1, 0, 2).reshape(stack.shape[1], -1)  # beside each other
            image.fromarray(frames).save(folder / f"{request.node.originalname}-{number}.png")

    return keep
