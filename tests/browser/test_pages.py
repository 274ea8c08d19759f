"""Every page: it loads, from here alone, without a complaint, and all its links lead somewhere."""

from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

HTML = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("*.html") if "_static" not in path.parts)
WIDE, NARROW = (1280, 900), (390, 844)
FACTS = """
for (const image of document.images) image.loading = "eager";
const decoded = Promise.allSettled(Array.from(document.images, image => image.decode()));
return decoded.then(() => ({
  title: document.title,
  headings: document.querySelectorAll("h1").length,
  links: Array.from(document.links, link => link.href),
  ids: Array.from(document.querySelectorAll("[id]"), element => element.id),
  blank: Array.from(document.images).filter(image => !image.naturalWidth).map(image => image.src),
}));
"""
#: The theme lets the content scroll sideways by itself, so the document never looks too wide.
OVERFLOW = """
const wide = document.documentElement.clientWidth;
const boxes = [document.documentElement, document.body, document.querySelector(".content")];
const widest = Math.max(...boxes.map(box => box.scrollWidth));
const outside = Array.from(document.querySelectorAll("article *"))
  .filter(element => element.getBoundingClientRect().right > wide + 1)
  .slice(0, 5).map(element => element.outerHTML.slice(0, 120));
return widest <= wide ? [] : [`${widest} pixels`, ...outside];
"""


@pytest.fixture(scope="session")
def visits(chromium, site):
    """What the browser found on each page: once on a wide screen, once on a narrow one."""
    found = {}
    for page in PAGES:
        chromium.resize(*WIDE)
        chromium.open(site.url(page))
        facts = chromium.run(FACTS)
        chromium.resize(*NARROW)
        facts["overflow"] = chromium.run(OVERFLOW)
        facts["complaints"] = chromium.complaints()
        facts["asked"], facts["failed"] = chromium.traffic()
        found[page] = facts
    return found


def test_there_is_a_site():
    assert len(PAGES) > 40
    assert {"index.html", "search.html", "start.html", "troubleshooting.html", "api/compressed.html"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_it_loads_without_a_complaint(visits, page):
    assert visits[page]["complaints"] == []
    assert visits[page]["failed"] == []
    assert visits[page]["blank"] == []
    assert visits[page]["headings"] == (0 if page == "search.html" else 1)  # that one has its results there
    assert "sb3-extra-buffers" in visits[page]["title"]


@pytest.mark.parametrize("page", PAGES)
def test_it_asks_nobody_else(visits, page):
    # Others than these are no requests: «data:» is part of the page, «chrome:» of the browser.
    hosts = {urlsplit(url).hostname for url in visits[page]["asked"] if url.startswith(("http", "ws"))}
    assert hosts == {"127.0.0.1"}


@pytest.mark.parametrize("page", PAGES)
def test_its_links_lead_somewhere(visits, site, page):
    broken = []
    for link in visits[page]["links"]:
        address, anchor = urldefrag(link)
        if not address.startswith(site.address):
            continue
        target = unquote(urlsplit(address).path).lstrip("/")
        known = visits[target]["ids"] if target in visits else [unquote(anchor)]
        if not (HTML / target).is_file() or (anchor and unquote(anchor) not in known):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_it_fits_a_narrow_screen(visits, page):
    assert visits[page]["overflow"] == []


def test_every_page_can_be_reached_from_the_first_one(visits, site):
    reached, waiting = set(), ["index.html"]
    while waiting:
        page = waiting.pop()
        if page in reached or page not in visits:
            continue
        reached.add(page)
        links = (urldefrag(link)[0] for link in visits[page]["links"])
        waiting += [link.removeprefix(f"{site.address}/") for link in links if link.startswith(site.address)]
    assert sorted(set(PAGES) - reached - {"search.html"}) == []
