"""Connect Open WebUI to a site with a scripted model, and ask through its API and in a browser.

    .venv-dev/bin/python -m benchmarks.clients.open_webui [FOLDER [SCREENSHOT]]

The client (7 GB) is kept in FOLDER for the next run. The connection is the one that docs/protocols.md
describes. Asks two questions through Open WebUI's own API and two in its page, and prints a table.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path

from playwright.sync_api import expect

from benchmarks.clients.run import CitingModel, api_key, wait_for_handbook
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import KEY
from chatsite.tests.front_ends import driven_chromium
from chatsite.tests.server import BASE, Site, temporary_folder

QUESTIONS = ("Until when can I use up last year's leave?", "And who decides about it?")
CITED = "employee-handbook.pdf"
SECONDS = 600  # a long time, because the first start creates a database
BLOCK = re.compile(
    r"^### Open WebUI$.*?^```sh\n(?P<install>[^\n]+)\n(?P<serve>.*?)^```$", re.MULTILINE | re.DOTALL
)
# Settings that keep Open WebUI from calling other addresses; none of them concerns the connection to the
# site.
QUIET = {
    "OFFLINE_MODE": "true",
    "HF_HUB_OFFLINE": "1",
    "RAG_EMBEDDING_ENGINE": "openai",
    "ANONYMIZED_TELEMETRY": "false",
    "SCARF_NO_ANALYTICS": "true",
    "DO_NOT_TRACK": "true",
}
# Lengths of the visible answers.
WATCH = """
    window.lengths = [];
    new MutationObserver(() => {
      for (const answer of document.querySelectorAll(".chat-assistant")) {
        window.lengths.push(answer.innerText.length);
      }
    }).observe(document, { subtree: true, childList: true, characterData: true });
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def install(folder):
    """The folder of the client's programs."""
    programs = folder / "open-webui" / "bin"
    if not (programs / "open-webui").exists():
        venv.create(programs.parent, with_pip=True)
        subprocess.run([programs / "python", "-m", "pip", "install", "-q", "open-webui"], check=True)
    return programs


class Client:
    """Open WebUI at `url`, as the first person who signs up."""

    def __init__(self, url):
        self.url, self.token = url, ""

    def call(self, path, body=None):
        """The text of the answer to a request."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return response.read().decode()

    def sign_up(self):
        person = {"name": "Ann", "email": "ann@example.org", "password": "a-long-Passphrase-1"}
        self.token = json.loads(self.call("/api/v1/auths/signup", person))["token"]

    def model(self):
        return json.loads(self.call("/api/models"))["data"][0]["id"]


@contextlib.contextmanager
def open_webui(programs, site, key):
    """The client, started with the command in the documentation."""
    found = BLOCK.search((BASE / "docs" / "protocols.md").read_text())
    port = free_port()
    command = found["serve"].replace("--port 3000", f"--host 127.0.0.1 --port {port}")
    data = Path(tempfile.mkdtemp())
    environment = os.environ | QUIET | {"SITE": site.url, "KEY": key, "DATA_DIR": str(data)}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    with (data / "log").open("w+") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec env {command}"], cwd=data, env=environment, stdout=log, stderr=log
        )
        try:
            client = Client(f"http://127.0.0.1:{port}")
            deadline = time.monotonic() + SECONDS
            while True:
                with contextlib.suppress(urllib.error.URLError, ConnectionError):
                    client.call("/health")
                    break
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"Open WebUI did not start:\n{log.read()[-3000:]}")
                time.sleep(0.5)
            yield client
        finally:
            process.terminate()
            process.wait(timeout=30)
            shutil.rmtree(data, ignore_errors=True)


def ask_api(client, model):
    """Ask two questions in one conversation, streamed; return whether both answers have citations."""
    messages, cited = [{"role": "system", "content": "Be brief."}], []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        body = {"model": model, "messages": messages, "stream": True}
        lines = [
            line[6:]
            for line in client.call("/api/chat/completions", body).splitlines()
            if line[:6] == "data: "
        ]
        chunks = [json.loads(line) for line in lines if line != "[DONE]"]
        pieces = [
            choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", [])
        ]
        messages.append({"role": "assistant", "content": "".join(pieces)})
        cited.append(CITED in messages[-1]["content"] and len([piece for piece in pieces if piece]) > 3)
    return cited == [True, True]


def ask_page(chromium, client, site, screenshot):
    """Ask two questions in the page; return whether words came one by one, and whether sources are links."""
    page = chromium.new_page()
    page.set_default_timeout(SECONDS * 1000)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.add_init_script(f"localStorage.setItem('token', {json.dumps(client.token)}); {WATCH}")
    page.goto(client.url)
    news = page.get_by_role("button", name=re.compile("Okay, Let's Go"))
    box, answers = page.locator("#chat-input"), page.locator(".chat-assistant")
    expect(box).to_be_visible()
    for number, question in enumerate(QUESTIONS):
        if news.count():
            news.first.click()
        box.click()
        page.keyboard.type(question)
        page.keyboard.press("Enter")
        expect(answers.nth(number)).to_contain_text(CITED)
    links = page.locator(f'a[href^="{site.url}/content/"]')
    sources = page.get_by_role("button", name=re.compile("^Toggle 1 sources?$"))
    with contextlib.suppress(AssertionError):
        expect(sources.first).to_be_visible(timeout=10_000)
        sources.first.click()
        page.get_by_role("button", name=re.compile("^View source: 1 ")).first.click()
        expect(links.first).to_be_visible(timeout=10_000)
    if screenshot:
        page.screenshot(path=screenshot)
    return {
        "two questions in the page": not faults and answers.count() == len(QUESTIONS),
        "words as they are written": len(set(page.evaluate("window.lengths"))) > 3,
        "the sources as links to the site": links.count() > 0,
    }


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()).resolve()
    programs = install(folder)
    data = temporary_folder()
    try:
        with FakeOpenAI() as model, driven_chromium() as chromium:
            model._script = CitingModel()
            settings = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "CHAT_MODEL": "fake"}
            with Site(data, **settings) as site:
                wait_for_handbook(site)
                with open_webui(programs, site, api_key(site)) as client:
                    client.sign_up()
                    results = {"two questions through its API, streamed": ask_api(client, client.model())}
                    results |= ask_page(chromium, client, site, sys.argv[2] if len(sys.argv) > 2 else "")
                    version = json.loads(client.call("/api/version"))["version"]
    finally:
        shutil.rmtree(data, ignore_errors=True)
    print("| client | use | |\n|---|---|---|")
    for what, passed in results.items():
        print(f"| `open-webui {version}` | {what} | {'passed' if passed else 'failed'} |")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
