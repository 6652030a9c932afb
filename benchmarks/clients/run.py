"""Runs published OpenAI clients, installed into a separate folder, against a site with a scripted model.

    .venv-dev/bin/python -m benchmarks.clients.run [FOLDER]

The clients are kept in FOLDER for the next run. Prints a table, which docs/protocols.md summarises.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import psycopg

from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import KEY, answer
from chatsite.tests.server import BASE, Site, reading_parameters, temporary_folder

HERE = Path(__file__).parent
PYTHON = [
    "openai",
    "langchain-openai",
    "llama-index-llms-openai-like",
    "llama-index-embeddings-openai",
    "litellm",
    "mcp",  # needed by litellm's Responses
]
JAVASCRIPT = [
    "openai",
    "ai",
    "@ai-sdk/openai",
    "@ai-sdk/openai-compatible",
    "@microsoft/ai-chat-protocol",
    "zod",
]
SECONDS = 300
READ = "SELECT true FROM ingestion_document WHERE name = 'employee-handbook.pdf' AND status = 'ready'"


class CitingModel:
    """The script of every answer: one sentence that cites the first source, perhaps as JSON.

    `pause` is the number of seconds between two words; `members` are the members of the JSON besides the
    text.
    """

    def __init__(self, *, pause=0.0, members=()):
        self.pause = pause
        self.members = dict(members)

    def __bool__(self):
        return True

    def pop(self, place):
        return self.say

    async def say(self, exchange):
        request = exchange.request
        found = re.search(r"^Sources:\n(\S+): ", request.prompt, re.M)
        text = f"Until the end of March [{found[1] if found else ''}]."
        if request.body.get("response_format"):
            text = json.dumps(self.members | {"text": text})
        await answer(*re.findall(r"\s*\S+", text), pause=self.pause)(exchange)


def install(folder):
    """Install the clients; returns their Python interpreter and the folder of the JavaScript ones."""
    python = folder / "python" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "python", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PYTHON], check=True)
    modules = folder / "javascript"
    if not (modules / "node_modules").exists():
        modules.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--no-package-lock", "--prefix", modules]
        subprocess.run(["npm", "install", *options, *JAVASCRIPT], check=True, stdout=subprocess.DEVNULL)
    return python, modules


def wait_for_handbook(site):
    """Wait until the document that answers the clients' question has been read."""
    deadline = time.monotonic() + SECONDS
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        while not connection.execute(READ).fetchone():
            assert time.monotonic() < deadline, "The handbook was not read."
            time.sleep(0.2)


def results(command, site, key):
    environment = os.environ | {"CLIENT_BASE_URL": f"{site.url}/v1", "CLIENT_KEY": key}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, timeout=SECONDS
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def api_key(site, *scopes):
    """An API key of the demo's employee, with these scopes instead of the default ones."""
    environment = os.environ | {"CHATSITE_DATA_DIR": str(site.folder)}
    command = [sys.executable, "manage.py", "create_api_key", "employee"]
    command += [f"--scope={scope}" for scope in scopes]
    done = subprocess.run(command, cwd=BASE, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()).resolve()
    python, modules = install(folder)
    data = temporary_folder()
    try:
        with FakeOpenAI() as model:
            model._script = CitingModel(pause=0.05, members={"days": 5})
            settings = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "CHAT_MODEL": "fake"}
            with Site(data, **settings) as site:
                wait_for_handbook(site)
                key = api_key(site)
                found = results([python, HERE / "python_clients.py"], site, key)
                found += results(["node", HERE / "javascript_clients.mjs", modules], site, key)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    print("| client | use | |\n|---|---|---|")
    for each in found:
        outcome = "passed" if each["passed"] else f"failed: {each['said']}"
        print(f"| `{each['client']}` | {each['what']} | {outcome} |")
    return 0 if found and all(each["passed"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
