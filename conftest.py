"""Settings for every test in the repository."""

from hypothesis import settings

# Examples are the same in every run, and a busy machine is no reason to fail.
settings.register_profile("repository", derandomize=True, deadline=None)
settings.load_profile("repository")
