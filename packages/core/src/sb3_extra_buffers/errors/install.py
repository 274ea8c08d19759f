"""``install_command``: the pip command behind every install hint."""

from __future__ import annotations


def install_command(distribution: str, extra: str = "", *, upgrade: bool = False) -> str:
    """The pip command for a distribution, from the checkout or the folder of wheels that ours were installed from.

    It reads metadata: call it only where a message is written.
    """
    import json
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    command, brackets = f"pip install{' --upgrade' * upgrade}", f"[{extra}]" if extra else ""
    for installed in ("sb3-extra-buffers-core", "sb3-extra-buffers"):
        try:
            url = urlsplit(json.loads(metadata.distribution(installed).read_text("direct_url.json") or "")["url"])
        except Exception:  # not installed, or nothing is recorded (PEP 610): a message must not fail
            continue
        source = Path(url2pathname(url.path))
        folder = source.parent / distribution.removeprefix("sb3-extra-buffers-").replace("sb3-extra-", "")
        if (source / "pyproject.toml").is_file() and (folder / "pyproject.toml").is_file():
            return f'{command} "{folder}{brackets}"'
        if source.suffix == ".whl" and any(source.parent.glob(f"{distribution.replace('-', '_')}-*.whl")):
            command += f' --find-links "{source.parent}"'
            break
    return f'{command} "{distribution}{brackets}>=1"' if extra else f"{command} {distribution}"
