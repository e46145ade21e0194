"""The page of a trace in a real browser, where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
import requests

from aeye.trace_reader import read_trace
from aeye.trace_report import render

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="needs chromium and chromedriver"
)

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# The tab key, as the protocol writes it.
TAB = "\ue004"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & <b>bold</b>"


def line(event: str, time: float, **fields: Any) -> str:
    return json.dumps({"event": event, "time": time, "run": "r", **fields})


def trace() -> list[str]:
    """Return the lines of a run with all kinds of rows, and hostile text in them."""
    asked = {"role": "user", "content": HOSTILE}
    called = {"id": "c1", "name": "find", "arguments": '{"city": "Paris"}'}
    note = {"name": "completion.retry", "level": "WARNING"}
    return [
        line("trace", 0, format=1),
        line("run_start", 1000, agent=HOSTILE, prompt=asked),
        line(
            "model_start",
            1000.1,
            id="m1",
            turn=1,
            request={
                "kept": 0,
                "messages": [{"role": "system", "content": "Be brief."}, asked],
                "tools": [{"name": "find", "description": "", "parameters": {}}],
                "model": "m",
            },
        ),
        line("note", 1000.2, id="m1", **note, attributes={"status_code": 503}),
        line(
            "model_end",
            1001,
            id="m1",
            first=0.4,
            response={"content": "", "tool_calls": [called]},
            usage={"input": 900, "output": 50, "cached": 300},
        ),
        line("tool_start", 1001, id="t1", turn=1, tool="find", call="c1", args="{}"),
        line("tool_error", 1002, id="t1", error={"type": "E", "message": HOSTILE}),
        line(
            "model_start",
            1002,
            id="m2",
            turn=2,
            request={"kept": 2, "messages": [{"role": "tool", "content": "no"}]},
        ),
        line(
            "model_end",
            1003,
            id="m2",
            response={"content": HOSTILE, "model": "m-1", "finish_reason": "stop"},
            usage={"input": 950, "output": 9},
        ),
        line("run_end", 1003, status="completed", output=HOSTILE, usage={}),
    ]


class Browser:
    """A page in Chromium, driven over the protocol that its driver speaks."""

    def __init__(self, profile: Path) -> None:
        self._http = requests.Session()
        self._driver = subprocess.Popen(
            [str(DRIVER), "--port=0"], stdout=subprocess.PIPE, text=True
        )
        assert self._driver.stdout is not None
        port = ""
        for said in self._driver.stdout:
            if "started successfully on port" in said:
                port = said.rpartition("port ")[2].strip(". \n")
                break
        self._url = f"http://127.0.0.1:{port}/session"
        options = {
            "binary": BROWSER,
            "args": [*ARGUMENTS, f"--user-data-dir={profile}"],
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            made = self._post("", capabilities={"alwaysMatch": wanted})
        except BaseException:
            self._stop()
            raise
        self._url += f"/{made['sessionId']}"

    def close(self) -> None:
        self._http.delete(self._url, timeout=20)
        self._stop()

    def _stop(self) -> None:
        self._http.close()
        self._driver.terminate()
        self._driver.communicate(timeout=20)

    def _post(self, path: str, **body: Any) -> Any:
        answer = self._http.post(self._url + path, json=body, timeout=20)
        assert answer.ok, answer.text
        return answer.json()["value"]

    def open(self, page: Path) -> None:
        self._post("/url", url=page.as_uri())

    def run(self, script: str, *args: Any) -> Any:
        return self._post("/execute/sync", script=script, args=list(args))

    def open_all(self) -> None:
        """Open every row, and whatever can be opened in it."""
        self.wait(
            "const all = [...document.querySelectorAll('details')];"
            "all.forEach((one) => { one.open = true; });"
            "return all.every((one) => one.childElementCount > 1"
            " && one.lastElementChild.childNodes.length);"
        )

    def wait(self, script: str) -> None:
        """Run *script* again and again until it returns something true."""
        again = (
            f"const done = arguments[0]; const ready = () => {{ {script} }};"
            "(function look() { if (ready()) done(); else setTimeout(look, 5); })();"
        )
        self._post("/execute/async", script=again, args=[])

    def open_row(self, row: str) -> str:
        """Click on a row and return what it then shows."""
        self.click(f"{row} > summary")
        self.wait(f"return document.querySelector('{row} > .body').innerText;")
        return self.text(f"{row} > .body")

    def command(self, name: str, **params: Any) -> None:
        """Send a command of the browser's own protocol."""
        self._post("/goog/cdp/execute", cmd=name, params=params)

    def log(self, kind: str) -> list[Any]:
        found: list[Any] = self._post("/se/log", type=kind)
        return found

    def click(self, selector: str) -> None:
        found = self._post("/element", using="css selector", value=selector)
        self._post(f"/element/{next(iter(found.values()))}/click")

    def press(self, key: str) -> None:
        steps = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": steps}
        self._post("/actions", actions=[keyboard])

    def text(self, selector: str) -> str:
        said: str = self.run(
            "return document.querySelector(arguments[0]).innerText", selector
        )
        return said


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    """The browser, with the trace opened in it."""
    file = tmp_path / "trace.html"
    file.write_text(render(read_trace(trace()), "trace.jsonl"), encoding="utf-8")
    browser.log("performance")  # what the browser did before
    browser.open(file)
    return browser


def test_details_are_filled_in_when_opened(page: Browser) -> None:
    """A row says all it knows when it is opened, and nothing before."""
    assert page.run("return document.querySelectorAll('.body *').length") == 0

    said = page.open_row(".row.model")

    assert HOSTILE in said
    assert "1 tool offered: find" in said
    assert '{ "city": "Paris" }' in said
    assert "completion.retry\nstatus code 503" in said


def test_a_request_is_put_together(page: Browser) -> None:
    """A request shows what is new, and the messages before it on demand."""
    last = ".row.model:last-of-type"
    assert "2 earlier messages" in page.open_row(last)

    page.click(f"{last} .body details summary")
    page.wait(f"return document.querySelector('{last} .body .said.user');")

    said = page.text(f"{last} .body")
    assert said.index("Be brief.") < said.index("no\n") < said.index("Answered")


def test_text_stays_text(page: Browser) -> None:
    """No text of a trace becomes an element, opened or not, and nothing runs."""
    page.open_all()

    assert page.text("details.row.tool .body").count(HOSTILE) == 1
    assert page.run("return document.querySelectorAll('img, b b, .body b').length") == 0
    assert page.run("return document.scripts.length") == 2


def test_it_loads_nothing_and_complains_about_nothing(page: Browser) -> None:
    """The page asks for no address but its own, and the console stays empty."""
    page.open_row(".row.model")

    told = [
        json.loads(entry["message"])["message"] for entry in page.log("performance")
    ]
    asked = {
        event["params"]["request"]["url"].split(":")[0]
        for event in told
        if event["method"] == "Network.requestWillBeSent"
    }
    assert asked <= {"file", "data"}
    assert asked
    assert page.log("browser") == []


def test_the_keyboard_is_enough(page: Browser) -> None:
    """Rows are reached with the tab key and opened with the space bar."""
    for _ in range(40):
        page.press(TAB)
        if page.run("return document.activeElement.closest('details.row') !== null"):
            break
    page.press(" ")

    assert page.run("return document.activeElement.parentElement.open") is True


def test_a_problem_is_a_link(page: Browser) -> None:
    """The list of failures leads to the row, and opens it."""
    page.click(".problems a")

    page.wait("return document.querySelector('.row.tool > .body').innerText;")
    assert HOSTILE in page.text(".row.tool .body")


# What the two scripts below need to know of colours.
COLOURS = """
const light = (rgb) => {
  const part = (n) => (n /= 255) <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(rgb[0]) + 0.7152 * part(rgb[1]) + 0.0722 * part(rgb[2]);
};
const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
const ground = (at) => {
  for (; at; at = at.parentElement) {
    const color = numbers(getComputedStyle(at).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const contrast = (color, at) => {
  const pair = [light(numbers(color)), light(ground(at))];
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
};
let worst = [99, ""];
const look = (found, at) => {
  if (found < worst[0]) worst = [found, at.className || at.tagName];
};
"""
# The lowest contrast of text that people can see, and where it is.
OF_TEXT = """
for (const at of document.querySelectorAll("body *")) {
  const own = [...at.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !at.getClientRects().length || /SCRIPT|STYLE/.test(at.tagName)) continue;
  look(contrast(getComputedStyle(at).color, at), at);
}
return worst;
"""
# The same of bars and swatches, against what they lie on.
OF_BARS = """
for (const at of document.querySelectorAll(".bar, .bar i, .meter i, .key i")) {
  const style = getComputedStyle(at);
  const drawn = parseFloat(style.borderTopWidth);
  const color = drawn ? style.borderTopColor : style.backgroundColor;
  look(contrast(color, at.closest(".track, .tokens, .key")), at);
}
return worst;
"""


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(page: Browser, scheme: str, width: int) -> None:
    """Text has a contrast of 4.5, bars of 3; nothing sticks out at the side."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    page.command("Emulation.setEmulatedMedia", features=[feature])
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.command("Emulation.setDeviceMetricsOverride", **size)

    worst, where = page.run(COLOURS + OF_BARS)
    assert worst >= 3, where
    page.open_all()
    worst, where = page.run(COLOURS + OF_TEXT)
    assert worst >= 4.5, where
    assert page.run("return document.documentElement.scrollWidth") <= width
