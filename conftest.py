"""Settings for every test in the repository."""

from hypothesis import HealthCheck, settings

# Examples are the same in every run, and a busy machine is no reason to fail.
settings.register_profile("repository", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repository")
