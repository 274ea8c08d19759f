"""Names become plugins lazily, one at a time, and a bad plugin harms nobody else."""

import copy
import os
import re
import sys
import threading
from textwrap import dedent

import numpy as np
import pytest

from sb3_extra_buffers import codecs, heaps
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import (
    ParameterError,
    PluginConflictError,
    PluginLoadError,
    PluginProtocolError,
    UnknownPluginError,
)
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.testing.processes import in_forked_child, run_python

GOOD = """
    from sb3_extra_buffers.codecs import CodecPlugin, hookimpl
    from sb3_extra_buffers.codecs.none import NoneCodec

    @hookimpl
    def sb3_extra_buffers_codec():
        return CodecPlugin(protocol={protocol}, factory=NoneCodec, summary="A good one")
"""
CELL = CellSpec(np.uint8, 4)


def expect_others_to_work():
    for name in ("none", "rle", "gzip"):
        codec = bind(name, CELL)
        out = bytearray(4)
        codec.decode_into(codec.encode(b"abcd"), out)
        assert out == b"abcd"


def test_a_plugin_is_listed_without_being_imported_and_imported_when_bound(install):
    install("good-dist", "good", "fake_good", GOOD.format(protocol=1))
    assert "good" in codecs.names()
    assert "fake_good" not in sys.modules
    assert bind("good", CELL).spec.name == "good"
    assert "fake_good" in sys.modules


def test_binding_one_plugin_imports_no_other(install):
    install("good-dist", "good", "fake_good", GOOD.format(protocol=1))
    install("other-dist", "other", "fake_other", GOOD.format(protocol=1))
    bind("good", CELL)
    assert "fake_other" not in sys.modules


def test_listing_in_a_fresh_process_imports_no_plugin_and_nothing_heavy():
    code = """
import sys
from sb3_extra_buffers import codecs, heaps
names = codecs.names() + heaps.names()
assert {"none", "rle", "gzip", "memory", "ring"} <= set(names), names
plugins = [offer.entry_point.module for registry in (codecs.registry, heaps.registry)
           for offers in registry.offers().values() for offer in offers]
heavy = ["torch", "numba", "stable_baselines3", "zstandard", "lz4", "isal"]
print(*[name for name in plugins + heavy if name in sys.modules])
"""
    assert run_python(code).split() == []


def test_importing_the_core_prints_and_configures_nothing():
    code = """
import logging, threading
import sb3_extra_buffers.codecs, sb3_extra_buffers.heaps
assert not logging.getLogger().handlers and threading.active_count() == 1
"""
    assert run_python(code) == ""


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("raise OSError('libfoo.so.3 is missing')", "OSError: libfoo.so.3 is missing"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        (
            """
            from sb3_extra_buffers.codecs import hookimpl
            @hookimpl
            def sb3_extra_buffers_codec():
                raise RuntimeError("the driver is too old")
            """,
            "RuntimeError: the driver is too old",
        ),
        (
            """
            from sb3_extra_buffers.codecs import hookimpl
            @hookimpl
            def sb3_extra_buffers_codex():
                return None
            """,
            "unknown hook 'sb3_extra_buffers_codex'",
        ),
    ],
    ids=["raises-on-import", "exits-on-import", "missing-import", "hook-raises", "misspelt-hook"],
)
def test_a_broken_plugin_is_kept_and_raised_with_its_cause_each_time(install, source, cause):
    install(
        "bad-dist",
        "bad",
        "fake_bad",
        "counter = globals().get('counter', 0) + 1\n" + source.replace("\n            ", "\n"),
    )
    install("good-dist", "good", "fake_good", GOOD.format(protocol=1))
    for _ in range(3):
        with pytest.raises(PluginLoadError) as caught:
            bind("bad", CELL)
        assert "bad-dist 1.0" in str(caught.value)
        assert cause in str(caught.value)
        assert caught.value.__cause__ is not None
    bind("good", CELL)
    expect_others_to_work()


def test_two_distributions_with_one_name_are_an_error_that_names_both_only_if_it_is_used(install):
    install("first-dist", "twin", "fake_first", GOOD.format(protocol=1))
    install("second-dist", "twin", "fake_second", GOOD.format(protocol=1), version="2.5")
    assert codecs.names().count("twin") == 1
    expect_others_to_work()
    with pytest.raises(PluginConflictError, match=r"first-dist 1\.0 and by second-dist 2\.5"):
        bind("twin", CELL)
    assert not {"fake_first", "fake_second"} & set(sys.modules)


def test_a_plugin_may_not_take_the_name_of_a_built_in(install):
    install("thief-dist", "rle", "fake_thief", GOOD.format(protocol=1))
    with pytest.raises(PluginConflictError, match=r"sb3-extra-buffers-core .* and by thief-dist 1\.0"):
        bind("rle", CELL)


@pytest.mark.parametrize(("protocol", "older"), [(0, "odd-dist"), (2, "sb3-extra-buffers-core")])
def test_another_protocol_number_is_refused_and_says_what_to_upgrade(install, protocol, older):
    install("odd-dist", "odd", "fake_odd", GOOD.format(protocol=protocol))
    command = re.escape(install_command(older, upgrade=True))
    with pytest.raises(PluginProtocolError, match=rf"protocol {protocol}, expected protocol 1.*: {command}$"):
        bind("odd", CELL)
    expect_others_to_work()


@pytest.mark.parametrize(
    ("body", "found"),
    [("", "0 plugins"), ("@hookimpl\ndef sb3_extra_buffers_codec():\n    return 42", "an object of type int")],
)
def test_a_module_that_hands_over_no_plugin_is_refused(install, body, found):
    install("odd-dist", "odd", "fake_odd", "from sb3_extra_buffers.codecs import hookimpl\n" + body)
    with pytest.raises(PluginProtocolError, match=f"odd-dist 1.0 offers {found}"):
        bind("odd", CELL)


def test_a_factory_that_returns_no_codec_is_refused(install):
    source = GOOD.format(protocol=1).replace("factory=NoneCodec", "factory=lambda spec, cell: object()")
    install("odd-dist", "odd", "fake_odd", source)
    with pytest.raises(PluginProtocolError, match="a object without cell, decode_into"):
        bind("odd", CELL)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gzp", "Did you mean 'gzip'\\?$"),
        ("entirely-else", "install the distribution that provides this codec"),
        ("lz4-framed", "Did you mean 'lz4-frame'"),
        ("lz4-frame5", "follows a slash: lz4-frame/5$"),
        ("lz4-frame-5", "slash: lz4-frame/-5$"),
        ("lz4", "Did you mean 'lz4-block' or 'lz4-frame'"),
        ("gzip--5", "Did you mean 'gzip'"),
        ("GZIP", "Did you mean 'gzip'"),
    ],
)
def test_an_unknown_name_gets_the_nearest_one_and_the_installed_ones(name, hint):
    with pytest.raises(UnknownPluginError, match=rf"named '{name}'. Installed: .*gzip, .*none, rle.*{hint}"):
        bind(name, CELL)


@pytest.mark.parametrize(
    ("name", "home"), [("zstd", "zstd"), ("lz4-block", "lz4"), ("igzip", "isal"), ("rle-jit", "rle-numba")]
)
def test_a_known_codec_that_is_not_installed_gets_the_command_that_installs_it(name, home, monkeypatch):
    installed = {key: offers for key, offers in codecs.registry.offers().items() if key != name}
    monkeypatch.setattr(codecs.registry, "_offers", installed)
    monkeypatch.setattr(codecs.registry, "_loaded", {})
    monkeypatch.setattr(codecs.registry, "_failed", {})
    command = install_command(f"sb3-extra-buffers-codec-{home}")
    with pytest.raises(UnknownPluginError, match=re.escape(f"Run: {command}") + "$"):
        bind(name, CELL)


@pytest.mark.parametrize(("name", "home"), [("mmap", "heap-mmap"), ("device", "gpu"), ("device-ring", "gpu")])
def test_a_known_heap_that_is_not_installed_gets_the_command_that_installs_it(name, home, monkeypatch):
    installed = {key: offers for key, offers in heaps.registry.offers().items() if key in ("memory", "ring")}
    monkeypatch.setattr(heaps.registry, "_offers", installed)
    monkeypatch.setattr(heaps.registry, "_loaded", {})
    monkeypatch.setattr(heaps.registry, "_failed", {})
    command = install_command(f"sb3-extra-buffers-{home}")
    with pytest.raises(UnknownPluginError, match=re.escape(f"Run: {command}") + "$"):
        heaps.create(name, 5)


def test_refresh_finds_what_was_installed_since_and_tries_broken_ones_again(install, site):
    install("late-dist", "late", "fake_late", "raise OSError('not yet')")
    with pytest.raises(PluginLoadError):
        bind("late", CELL)
    (site / "fake_late.py").write_text(
        "\n".join(line[4:] for line in GOOD.format(protocol=1).splitlines()) + "\n# longer\n"
    )
    with pytest.raises(PluginLoadError):
        bind("late", CELL)
    codecs.registry.refresh()
    assert bind("late", CELL).spec.name == "late"


def test_a_heap_plugin_takes_the_same_road(install):
    source = """
        from sb3_extra_buffers.heaps import HeapPlugin, hookimpl
        from sb3_extra_buffers.heaps.memory import MemoryHeap

        @hookimpl
        def sb3_extra_buffers_heap():
            return HeapPlugin(protocol=1, factory=MemoryHeap, summary="A heap")
    """
    install("heap-dist", "attic", "fake_attic", source, group="heaps")
    assert "attic" in heaps.names()
    assert "attic" not in codecs.names()
    assert heaps.create("attic", 3).cells == 3


def test_many_threads_load_a_plugin_once(install):
    source = "import time\ntime.sleep(0.05)\n" + "\n".join(line[4:] for line in GOOD.format(protocol=1).splitlines())
    install("slow-dist", "slow", "fake_slow", source)
    loaded, barrier = [], threading.Barrier(8)

    def load():
        barrier.wait()
        loaded.append(codecs.registry.load("slow"))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 8
    assert all(plugin is loaded[0] for plugin in loaded)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_a_plugin_that_another_thread_imports(install, monkeypatch):
    started, go = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "wait_in_plugin", lambda: started.set() or go.wait(), raising=False)
    install("good-dist", "good", "fake_good", "import sys\nsys.wait_in_plugin()\n" + dedent(GOOD.format(protocol=1)))
    importing = threading.Thread(target=bind, args=("good", CELL))
    importing.start()
    started.wait()
    threading.Timer(0.1, go.set).start()
    in_forked_child(lambda: bind("good", CELL))  # a child that is forked too early waits for the import forever
    importing.join()


def test_a_kept_failure_does_not_collect_tracebacks(install):
    install("bad-dist", "bad", "fake_bad", "raise OSError('no')")
    caught = []
    for _ in range(2):
        with pytest.raises(PluginLoadError) as info:
            bind("bad", CELL)
        caught.append(info.value)
    assert caught[0] is not caught[1]
    assert str(copy.copy(caught[0])) == str(caught[1])


@pytest.mark.parametrize("name", [None, 5, {"name": "ring"}])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(ParameterError, match=r"it must be text, one of: .*memory, .*ring"):
        heaps.create(name, 5)


def test_a_factory_that_raises_is_reported_with_its_distribution_and_cause(install):
    source = GOOD.format(protocol=1).replace("factory=NoneCodec", "factory=lambda spec, cell: spec.params['speed']")
    install("odd-dist", "odd", "fake_odd", source)
    with pytest.raises(PluginLoadError, match=r"odd-dist 1.0 .*binding odd to 4 x uint8 raised KeyError: 'speed'"):
        bind("odd", CELL)


GREEDY = """
    from sb3_extra_buffers.codecs import CodecPlugin, hookimpl
    from sb3_extra_buffers.codecs.none import NoneCodec

    errors = [{first}]

    def factory(spec, cell):
        if errors:
            raise errors.pop()
        return NoneCodec(spec, cell)

    @hookimpl
    def sb3_extra_buffers_codec():
        {hook}
        return CodecPlugin(protocol=1, factory=factory, summary="Fails once")
"""


@pytest.mark.parametrize("hook", ["pass", "errors and factory(None, None)"], ids=["while binding", "while loading"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_lack_of_memory_or_an_interrupt_is_not_the_fault_of_the_plugin(install, error, hook):
    install("greedy-dist", "greedy", "fake_greedy", GREEDY.format(first=f"{error.__name__}('once')", hook=hook))
    with pytest.raises(error, match="once"):
        bind("greedy", CELL)
    assert bind("greedy", CELL).spec.name == "greedy"
