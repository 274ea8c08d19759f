"""The site on a server of this process, and a browser that looks at it."""

import json
import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

HTML = Path(__file__).parents[2] / "docs" / "_build" / "html"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever a page asks for elsewhere fails at once, and is seen in the log.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

READY = (
    "return location.href == arguments[0] && document.readyState == 'complete' && !!document.querySelector('footer')"
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and keeps no log of it."""

    def log_message(self, *_):
        pass


class Site:
    """The built pages, by their names."""

    def __init__(self, address):
        self.address = address

    def url(self, page):
        return f"{self.address}/{page}"


class Browser:
    """Chromium, and what it has logged since the last look."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, url):
        """Load a page; what came before is forgotten."""
        from selenium.webdriver.support.ui import WebDriverWait

        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.driver.get(url)
        # On a busy machine, «loaded» was once said of a document that was still empty.
        WebDriverWait(self.driver, 30).until(lambda _: self.run(READY, url))

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def complaints(self, *levels):
        """What the console shows besides plain messages."""
        wanted = levels or ("SEVERE", "WARNING")
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in wanted]

    def traffic(self):
        """Addresses that were asked for, and those that failed."""
        asked, failed = {}, []
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            facts = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                asked[facts["requestId"]] = facts["request"]["url"]
            elif event["method"] == "Network.responseReceived" and facts["response"]["status"] >= 400:
                failed.append(facts["response"]["url"])
            elif event["method"] == "Network.loadingFailed" and not facts.get("canceled"):
                failed.append(f"{asked.get(facts['requestId'])}: {facts['errorText']}")
        return sorted(set(asked.values())), failed

    def resize(self, width, height):
        """A screen of this size, also one that is narrower than a window can be."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    def picture(self, name):
        """Keep what can be seen now."""
        folder = Path(os.environ.get("SCREENSHOTS", ".reports/browser"))
        folder.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(folder / f"{name}.png"))


@pytest.fixture(scope="session")
def site():
    assert (HTML / "index.html").exists(), "build the site first: nox -s docs"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(HTML)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Site(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    thread.join(timeout=600)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Both paths are given, so nothing is looked for elsewhere and nothing is downloaded.
    service = webdriver.ChromeService(executable_path=os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(600)
    yield Browser(driver)
    driver.quit()


@pytest.fixture
def browser(chromium, site):
    """A wide screen, in the light, at the first page."""
    chromium.resize(1280, 900)
    chromium.open(site.url("index.html"))
    chromium.run("localStorage.setItem('theme', 'light')")
    chromium.open(site.url("index.html"))
    return chromium
