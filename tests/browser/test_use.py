"""What a reader does with the site: click, search, copy, read in the dark, read on a phone."""

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

HEADING = "return document.querySelector('h1').firstChild.textContent"
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
#: From 0 for black to 255 for white.
BRIGHTNESS = """
const [r, g, b] = getComputedStyle(document.querySelector(arguments[0]))[arguments[1]].match(/[0-9.]+/g).map(Number);
return 0.299 * r + 0.587 * g + 0.114 * b;
"""


def wait(browser, condition, seconds=20):
    return WebDriverWait(browser.driver, seconds).until(lambda _: condition())


def find(browser, selector):
    return browser.driver.find_element(By.CSS_SELECTOR, selector)


def click(browser, element):
    """Bring it to the middle, at once, and press it: pages scroll smoothly, and a moving target is missed."""
    browser.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def dark(browser):
    """Press the switch until it is dark: it goes through automatic, light and dark."""
    for _ in range(3):
        find(browser, ".content-icon-container .theme-toggle, .theme-toggle-content .theme-toggle").click()
        if browser.run("return document.body.dataset.theme") == "dark":
            return
    raise AssertionError("the switch has no dark state")


def test_the_sidebar_leads_to_pages(browser):
    for name, heading in (("Recipes", "Recipes"), ("Heaps", "Heaps"), ("API reference", "API reference")):
        click(browser, find(browser, ".sidebar-tree").find_element(By.LINK_TEXT, name))
        wait(browser, lambda expected=heading: browser.run(HEADING) == expected)
    assert browser.run("return document.querySelector('.sidebar-tree .current-page a').textContent") == "API reference"
    assert browser.complaints() == []


def test_the_version_is_shown(browser):
    assert browser.run("return document.querySelector('.sidebar-brand-text').textContent").split()[1][0].isdigit()


def test_the_next_page_is_one_click_away(browser, site):
    browser.open(site.url("start.html"))
    click(browser, find(browser, "a.next-page"))
    wait(browser, lambda: browser.run(HEADING) == "Choosing a codec")


@pytest.mark.parametrize("word", ["zstd", "HeapFullError", "prefetch"])
def test_search_finds_a_word(browser, word):
    field = find(browser, ".sidebar-search")
    field.send_keys(word, Keys.ENTER)
    wait(browser, lambda: "finished" in find(browser, "#search-results .search-summary").text)
    results = browser.driver.find_elements(By.CSS_SELECTOR, "#search-results .search li a")
    assert len(results) > 2
    if word == "zstd":
        browser.picture("search")
    # Sphinx warns of anchors with dots in them, which it looks up by a selector that takes the dots for classes.
    assert browser.complaints("SEVERE") == []
    click(browser, results[0])
    wait(browser, lambda: word.lower() in find(browser, "article").text.lower())


def test_search_says_so_if_it_finds_nothing(browser):
    find(browser, ".sidebar-search").send_keys("qwertzuiop", Keys.ENTER)
    wait(browser, lambda: "did not match any documents" in find(browser, "#search-results").text)


@pytest.mark.parametrize(
    ("page", "block", "first"),
    [
        ("start.html", ".highlight-python", "from stable_baselines3 import DQN"),
        ("troubleshooting.html", ".highlight-pycon", "import numpy as np"),
    ],
    ids=["code", "session"],
)
def test_a_block_is_copied_as_one_would_type_it(browser, site, page, block, first):
    browser.open(site.url(page))
    allowed = {"origin": site.address, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", allowed)
    centre = "document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})"
    browser.run(centre, block)
    button = find(browser, f"{block} button.copybtn")
    # By the mouse: a script may not write to the clipboard by itself.
    ActionChains(browser.driver).move_to_element(find(browser, f"{block} pre")).click(button).perform()
    wait(browser, lambda: "success" in button.get_attribute("class"))
    assert button.get_attribute("data-tooltip") == "Copied!"
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    assert copied.splitlines()[0] == first
    assert ">>>" not in copied


def test_the_dark_is_dark(browser, site):
    browser.open(site.url("saving-memory.html"))
    assert browser.run(BRIGHTNESS, "body", "backgroundColor") > 200
    light = browser.run(BACKGROUND)
    browser.picture("light")
    dark(browser)
    wait(browser, lambda: browser.run(BACKGROUND) != light)
    assert browser.run(BRIGHTNESS, "body", "backgroundColor") < 60
    assert browser.run(BRIGHTNESS, "article p", "color") > 150
    assert browser.run(BRIGHTNESS, "article img", "backgroundColor") > 200  # pictures are drawn on white
    browser.picture("dark")
    browser.open(site.url("architecture.html"))
    assert browser.run("return document.body.dataset.theme") == "dark"  # it is remembered
    browser.picture("dark-architecture")


def test_the_menu_opens_on_a_narrow_screen(browser, site):
    browser.resize(390, 844)
    browser.open(site.url("recipes.html"))
    sidebar = find(browser, ".sidebar-drawer")
    assert sidebar.rect["x"] + sidebar.rect["width"] <= 0
    browser.picture("narrow")
    find(browser, ".mobile-header .nav-overlay-icon").click()
    wait(browser, lambda: sidebar.rect["x"] >= 0)
    browser.picture("narrow-menu")
    click(browser, sidebar.find_element(By.LINK_TEXT, "Frames"))
    wait(browser, lambda: browser.run(HEADING) == "Frames")


@pytest.mark.parametrize("page", ["index", "choosing", "architecture", "troubleshooting", "api/compressed", "frames"])
def test_pictures_for_who_wants_to_look(browser, site, page):
    browser.open(site.url(f"{page}.html"))
    browser.picture(page.replace("/", "-"))
    browser.resize(390, 844)
    browser.picture(f"narrow-{page.replace('/', '-')}")
