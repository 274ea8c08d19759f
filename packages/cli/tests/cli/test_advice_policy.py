"""A saved policy plays the environment that it was trained in, and no other."""

import gymnasium
from gymnasium import spaces
from stable_baselines3 import PPO

QUICK = ("--quick", "--size", "5000")


def test_a_saved_policy_plays(run, tmp_path):
    PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, device="cpu").save(tmp_path / "model.zip")
    words = ("advise", "CartPole-v1", "--policy", tmp_path / "model.zip", "--steps", "64", *QUICK)
    assert run(*words, "--algorithm", "PPO")[2] == 0
    _, err, code = run(*words)
    assert code == 2
    assert "algorithm='' is not allowed; it must be the one that has saved the policy: A2C, DDPG, DQN, " in err
    _, err, code = run(*words, "--algorithm", "DQN")
    assert code == 2
    assert "expected a policy of DQN, found a file that it cannot load" in err
    other = ("advise", "Pendulum-v1", *words[2:], "--algorithm", "PPO")
    _, err, code = run(*other)
    assert code == 2
    assert ": expected a policy with observation_space Box(" in err


def test_a_policy_must_fit_in_both_spaces_and_not_only_in_shape(run, tmp_path):
    """The same three floats, within other bounds; the same observations, for other actions."""

    class Other(gymnasium.Wrapper):
        def __init__(self, **spaces):
            super().__init__(gymnasium.make("Pendulum-v1"))
            for name, space in spaces.items():
                setattr(self, name, space)

    for name, space in (("observation_space", spaces.Box(-9, 9, (3,))), ("action_space", spaces.Discrete(2))):
        path = tmp_path / f"{name}.zip"
        PPO("MlpPolicy", Other(**{name: space}), n_steps=8, batch_size=8, device="cpu").save(path)
        words = ("advise", "Pendulum-v1", "--policy", path, "--algorithm", "PPO", "--steps", "64", *QUICK)
        _, err, code = run(*words)
        assert code == 2
        assert f"a policy with {name} Box(" in err
        assert f"one with {space}. Use the environment that it was trained in." in err


def test_an_algorithm_without_a_policy_is_refused(run):
    _, err, code = run("advise", "CartPole-v1", "--algorithm", "PPO", *QUICK)
    assert code == 2
    assert "it is for --policy, which is missing" in err
