"""How the site is built: Sphinx reads the Markdown pages of this folder, and the docstrings of the installed packages.

``nox -s docs`` builds it, with warnings as errors. Nothing is fetched, neither now nor when a page is read.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from os.path import relpath
from pathlib import Path

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

project = "sb3-extra-buffers"
author = "the authors of sb3-extra-buffers"
release = version = version_of("sb3-extra-buffers")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]  # included files begin one level deeper

# Pages.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # so that links such as buffers.md#threads work here as on GitHub

# Reference. Names are documented where users import them from, not where they are defined.
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "show-inheritance": True}
maximum_signature_line_length = 88
# What docstrings refer to must be there. Types are exempt: most belong to numpy, torch and Stable-Baselines3, whose
# inventories would have to be fetched.
nitpicky = True
nitpick_ignore_regex = [("py:(class|obj)", ".*")]
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"

# Pages as they are shown.
html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_use_index = html_domain_indices = False  # the search finds names, and the reference lists them
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options: dict[str, object] = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
# What is copied from a block is what one types.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Files beside this folder that pages link to, and the page of the site that shows each.
SHOWN_BY = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "examples/README.md": "examples.md",
    "examples/heap-template/README.md": "heap-template.md",
    "examples/plugin-template/README.md": "plugin-template.md",
    "packages/recording/README.md": "record-buffers.md",
}
#: Pages whose tables are the table of contents: one chapter for each heading, one page for each first cell.
CONTENTS = ("index", "api/index")

#: What numpy's aliases have become by the time autodoc sees them, and what a reader knows them as.
READABLE = {
    r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[(~[\w.]+)\]\]": r"NDArray[\1]",
    r"type\[~typing\.Any\] \| ~numpy\.dtype\[~typing\.Any\] \| .*?_DTypeDict \| str": "DTypeLike",
    r"~numpy\._typing\._array_like\._Buffer \| .*\| complex \| bytes \| str \| [\w.~]+\[[^]]*\]": "ArrayLike",
}

#: Readmes of distributions are also shown by package indexes, so their links to this repository are absolute.
REPOSITORY = "https://github.com/Trenza1ore/sb3-extra-buffers/blob/main/"
_ABSOLUTE = re.compile(rf"\]\({re.escape(REPOSITORY)}([^)#\s]+)")
_LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")
_ENTRY = re.compile(r"^\| \[`?([^]`]+)`?\]\(([^)#]+)\.md\) \|", re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Connect what makes one text serve GitHub and the site."""
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    app.connect("missing-reference", find_by_last_name)
    # Before autodoc writes the types into the descriptions, which it does at 500.
    app.connect("object-description-transform", name_types, priority=400)


def read_page(_app: Sphinx, name: str, source: list[str]) -> None:
    """Links as the site needs them, and a table of contents where one belongs."""
    text = relinked(source[0], DOCS / Path(name).parent, name)
    if name in CONTENTS:
        text += "".join(f"\n\n{chapter}" for chapter in chapters(text))
    source[0] = text


def read_included(_app: Sphinx, path: Path, name: str, source: list[str]) -> None:
    """The same for a file that a page includes, whose links start from another folder."""
    source[0] = relinked(source[0], (DOCS / path).resolve().parent, name)


def relinked(text: str, folder: Path, name: str) -> str:
    """Lead links to files of the repository to the pages that show them; other files become downloads.

    :param text: Markdown, with links that are right on GitHub
    :param folder: where it stands
    :param name: the page that shows it
    """
    page = DOCS / Path(name).parent

    def replace(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if not target.is_relative_to(ROOT):
            return link[0]
        shown = SHOWN_BY.get(target.relative_to(ROOT).as_posix())
        return f"]({relpath(DOCS / shown if shown else target, page)}"

    return _LINK.sub(replace, _ABSOLUTE.sub(lambda link: f"]({relpath(ROOT / link[1], folder)}", text))


def chapters(text: str) -> list[str]:
    """A hidden toctree for each heading that is followed by a table of pages."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    found = [(title, _ENTRY.findall(body)) for title, body in zip(["", *parts[1::2]], parts[::2])]
    return [
        "\n".join(
            [
                "```{toctree}",
                ":hidden:",
                *([f":caption: {title}"] if title else []),
                "",
                *(f"{name} <{page}>" for name, page in pages),
                "```",
            ]
        )
        for title, pages in found
        if pages
    ]


def name_types(app: Sphinx, *_: object) -> None:
    """Shorten expanded types, for instance to ``NDArray[int64]``."""
    for types in app.env.current_document.autodoc_annotations.values():
        for parameter in types:
            for expanded, name in READABLE.items():
                types[parameter] = re.sub(expanded, name, types[parameter])


def find_by_last_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: Element) -> Element | None:
    """Resolve a bare class name in a docstring, or a class in a private module, to the page that documents it."""
    if node.get("refdomain") != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    objects = env.domains.python_domain.objects
    found = {entry.docname: entry.node_id for name, entry in objects.items() if name.rpartition(".")[2] == last}
    if len(found) != 1 or not last[:1].isupper():  # methods are called alike everywhere
        return None
    ((page, anchor),) = found.items()
    return make_refnode(app.builder, node["refdoc"], page, anchor, shown, last)
