"""``install_command``: the pip command behind every install hint."""

from __future__ import annotations


def install_command(distribution: str, extra: str = "", *, upgrade: bool = False) -> str:
    """The pip command for a distribution, from the checkout or the folder of wheels that ours were installed from.

    It reads metadata: call it only where a message is written.
    """
    import json
    import re
    from contextlib import suppress
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    command, brackets = f"pip install{' --upgrade' * upgrade}", f"[{extra}]" if extra else ""
    asked = f'"{distribution}{brackets}>=1"' if extra else distribution
    for installed in ("sb3-extra-buffers-core", "sb3-extra-buffers"):
        with suppress(Exception):  # not installed, or nothing is recorded (PEP 610): a message must not fail
            url = urlsplit(json.loads(metadata.distribution(installed).read_text("direct_url.json") or "")["url"])
            source = Path(url2pathname(url.path))
            if source.suffix == ".whl" and any(source.parent.glob(f"{distribution.replace('-', '_')}-*.whl")):
                return f'{command} --find-links "{source.parent}" {asked}'
            (source / "pyproject.toml").read_bytes()
            names, folders = [distribution], list[str]()
            for name in names:  # siblings that are needed and not installed are appended
                folder = source.parent / name.removeprefix("sb3-extra-buffers-").replace("sb3-extra-", "")
                folders.append(f'"{folder}{brackets * (not folders)}"')
                project = (folder / "pyproject.toml").read_text()
                needed = re.search(r"^dependencies = \[(.*?)\]$", project, re.MULTILINE | re.DOTALL)
                siblings = re.findall(r'"(sb3-extra-buffers[\w-]*)', needed[1] if needed else "")
                names += [one for one in siblings if not any(metadata.distributions(name=one)) and one not in names]
            return " ".join([command, *folders])
    elsewhere = "  # and --find-links, if you installed with it" * distribution.startswith("sb3-extra-buffers")
    return f"{command} {asked}{elsewhere}"
