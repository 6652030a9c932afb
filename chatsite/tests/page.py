"""One tab of the headless browser: what a person does there, and what they see."""

import base64
import importlib.util
import json
import re
import time
from pathlib import Path

from chatsite.tests.limits import MARGIN_SECONDS

WAIT_SECONDS = 60
KEYS = {  # name: (code, Windows key code, text)
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "Backspace": ("Backspace", 8, ""),
    "Delete": ("Delete", 46, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
    " ": ("Space", 32, " "),
}
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

# What Chromium says when a page was replaced under an expression, at whichever moment that was.
REPLACED = re.compile("context|navigated")


class BrowserError(AssertionError):
    """The browser could not do what a test asked."""


class Page:
    """One tab. Selectors are CSS; every action waits until its element is there."""

    def __init__(self, browser, url, session, context):
        self.browser = browser
        self.url = url
        self.session = session
        self.context = context
        self.problems = []
        self.requests = []
        self.dialogs = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        self.browser.pages.pop(self.session, None)
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def prepare(self, width, height, mobile, dark):
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        self.viewport(width, height, mobile)
        self.scheme("dark" if dark else "light")

    def note(self, method, event):
        """What a test may ask about later: problems, requests, dialogs."""
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in {"error", "assert"}:
            self.problems.append(
                " ".join(str(part.get("value", part.get("description"))) for part in event["args"])
            )
        elif method == "Log.entryAdded" and event["entry"]["level"] == "error":
            entry = event["entry"]
            self.problems.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}".strip())
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(event["message"])

    # Going and waiting

    def go(self, path):
        """Open a path of the site, or a whole address, and wait until it is loaded."""
        self.run("window.leaving = true")
        result = self.call("Page.navigate", url=path if "://" in path else self.url + path)
        if result.get("errorText"):
            raise BrowserError(f"{path}: {result['errorText']}")
        self.wait_until("!window.leaving && document.readyState === 'complete'")
        return self

    def reload(self):
        self.run("window.leaving = true")
        self.call("Page.reload")
        self.wait_until("!window.leaving && document.readyState === 'complete'")

    def run(self, script):
        """Value of a JavaScript expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    def wait_until(self, script, seconds=WAIT_SECONDS):
        """Wait until a JavaScript expression is true, and return its value."""
        deadline = time.monotonic() + seconds + MARGIN_SECONDS
        while True:
            try:
                if value := self.run(script):
                    return value
            except BrowserError as error:
                if not REPLACED.search(str(error)):
                    raise
            if time.monotonic() > deadline:
                raise BrowserError(f"Not true within {seconds} s: {script}")
            self.browser.listen(0.03)

    def wait_for(self, selector, text="", seconds=WAIT_SECONDS):
        """Wait until a visible element is there, with this text in it."""
        self.wait_until(
            f"[...document.querySelectorAll({json.dumps(selector)})].some(element =>"
            f" element.checkVisibility() && element.textContent.includes({json.dumps(text)}))",
            seconds,
        )

    def settle(self, seconds=0.3):
        """Take in what the browser still has to say."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.browser.listen(left)

    # Looking

    @property
    def path(self):
        return self.run("location.pathname + location.search")

    def text(self, selector="body"):
        self.wait_for(selector)
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector):
        return self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(element => element.innerText)"
        )

    def count(self, selector):
        return self.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def attribute(self, selector, name):
        return self.run(f"document.querySelector({json.dumps(selector)})?.getAttribute({json.dumps(name)})")

    def focused(self):
        """A short description of the element that has the focus."""
        return self.run(
            "(element => element.tagName.toLowerCase() + (element.id ? '#' + element.id : '')"
            " + (element.className ? '.' + [...element.classList].join('.') : ''))(document.activeElement)"
        )

    def screenshot(self, path, full=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    # Doing

    def click(self, selector):
        """Click the middle of an element with the mouse."""
        self.wait_for(selector)
        x, y = self.run(
            f"(element => {{ element.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            " const box = element.getClientRects()[0];"
            " return [box.x + box.width / 2, box.y + box.height / 2] })"
            f"([...document.querySelectorAll({json.dumps(selector)})]"
            ".find(element => element.checkVisibility()))"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector, text):
        """Click a field, empty it, and enter text."""
        self.click(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).select?.()")
        self.call("Input.insertText", text=text)

    def press(self, keys):
        """Press a key, with others held: `Enter`, `Control+k`, `Shift+Tab`."""
        *held, key = keys.split("+") if keys != "+" else ["+"]
        modifiers = sum(MODIFIERS[name] for name in held)
        if key in KEYS:
            code, number, text = KEYS[key]
        else:
            code, number, text = (f"Key{key.upper()}" if key.isalpha() else ""), ord(key.upper()), key
        if modifiers & ~MODIFIERS["Shift"]:
            text = ""
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def choose_files(self, selector, *paths):
        """Put files into a file field."""
        document = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def sign_in(self, username, password):
        self.go("/accounts/sign-in/")
        self.type("input[name=username]", username)
        self.type("input[name=password]", password)
        self.run("window.leaving = true")
        self.press("Enter")
        self.wait_until("!window.leaving && document.readyState === 'complete'")

    # Circumstances

    def viewport(self, width, height, mobile=False):
        scale = 2 if mobile else 1
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=mobile,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def scheme(self, name, reduced_motion=False):
        """`light` or `dark`, as the operating system would say it."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        if reduced_motion:
            features.append({"name": "prefers-reduced-motion", "value": "reduce"})
        self.call("Emulation.setEmulatedMedia", features=features)

    def offline(self, off=True):
        """Cut the network, or restore it. Open WebSockets are cut by the site, not by this."""
        self.call(
            "Network.emulateNetworkConditions",
            offline=off,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )

    def scripts(self, on):
        """JavaScript on or off, from the next page on."""
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def accessibility_problems(self, **options):
        """What axe finds: one line for each rule that is broken, with the elements that break it."""
        if not self.run("!!window.axe"):
            self.run(axe_source() + "; true")
        found = self.run(f"axe.run(document, {json.dumps(options)}).then(result => result.violations)")
        return [
            f"{rule['id']} ({rule['impact']}): "
            + ", ".join(str(node["target"][0]) for node in rule["nodes"][:5])
            for rule in found
        ]


def axe_source():
    """axe-core's script, from a package that carries it; the package's own code is not used."""
    package = importlib.util.find_spec("axe_playwright_python")
    assert package, "The package axe-playwright-python carries axe and is not installed."
    return Path(package.submodule_search_locations[0], "axe.min.js").read_text(encoding="utf-8")
