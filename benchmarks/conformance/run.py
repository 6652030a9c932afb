"""Check a running site against its API description with schemathesis: all checks, all phases.

    .venv-dev/bin/python -m benchmarks.conformance.run [EXAMPLES [guest|key|all [PHASES [PATHS [FOLDER]]]]]

EXAMPLES is the number of examples for each operation (by default 50). Runs as a guest, on a site that serves
guests, and with a key, on a site that demands one. PHASES is a list such as `coverage,fuzzing`, by default
all four; PATHS is a regular expression for the paths to try, by default all. A whole run takes hours; these
arguments divide it into pieces. A report of each piece is kept in FOLDER; `benchmarks.conformance.table`
makes a table of these reports. The answers come from a scripted model.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from benchmarks.clients.run import CitingModel, api_key, wait_for_handbook
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import KEY
from chatsite.tests.server import BASE, Site, temporary_folder

HERE = Path(__file__).parent
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CALLERS = ("guest", "key")
PHASES = "examples,coverage,fuzzing,stateful"
MANY = "1000000"
QUESTIONS = 4
STATEFUL_SECONDS = 300
# Thousands of questions come from one address in a few minutes.
UNLIMITED = {
    "CHATSITE_JOURNAL_FLUSH_SECONDS": "0.02",  # a short interval, because each answer waits for a flush
    "CHATSITE_USER_QUESTIONS_PER_MINUTE": MANY,
    "CHATSITE_USER_EMBEDDINGS_PER_MINUTE": MANY,
    "CHATSITE_USER_CONCURRENT_ANSWERS": MANY,
    "CHATSITE_GUESTS_PER_MINUTE": MANY,
    "CHATSITE_GUESTS_PER_ADDRESS": MANY,
    "CHATSITE_GUEST_QUESTIONS_PER_MINUTE": MANY,
    "CHATSITE_GUEST_QUESTIONS_PER_ADDRESS": MANY,
}


@contextlib.contextmanager
def conformance_site(caller):
    """A demo site for this caller, the headers of the caller's requests, and the ids of existing objects."""
    folder = temporary_folder()
    try:
        with FakeOpenAI() as model:
            model._script = CitingModel()
            settings = UNLIMITED | {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": KEY, "CHAT_MODEL": "fake"}
            settings |= {
                "CHAT_MODEL_IMAGES": "1",
                "CHATSITE_LOGIN_REQUIRED": "0" if caller == "guest" else "1",
            }
            with Site(folder, **settings) as site:
                wait_for_handbook(site)
                headers = guest_headers(site) if caller == "guest" else key_headers(site)
                yield site, headers, existing_ids(site, headers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def key_headers(site):
    """The header of a key with all scopes."""
    scopes = ("chat", "search", "documents:read", "documents:write", "admin:documents", "webhooks")
    key = api_key(site, *scopes)
    return {"Authorization": f"Bearer {key.split()[0]}"}


def guest_headers(site):
    """The headers of a guest's request: the cookie, sent as by a page of the same origin."""
    body = json.dumps({"messages": [{"role": "user", "content": "Hello?"}]}).encode()
    request = urllib.request.Request(f"{site.url}/chat", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        cookies = [value.partition(";")[0] for value in response.headers.get_all("Set-Cookie")]
    return {"Cookie": "; ".join(cookies), "Sec-Fetch-Site": "same-origin"}


def existing_ids(site, headers):
    """Ids of some answered questions, and of shares of their conversations, by the name of the parameter."""

    def call(path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            site.url + path, data, headers | {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.headers.get("Chat-Run"), json.load(response)

    def put(name):
        """Upload a document under this name."""
        request = urllib.request.Request(
            f"{site.url}/api/documents/{name}?name={name}.md",
            b"Leave is carried over.",
            headers,
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=60).close()
        return name

    names = ("run_id", "response_id", "conversation_id", "message_id", "share_id", "public_id", "project_id")
    found = {name: [] for name in names}
    for _ in range(QUESTIONS):
        run, response = call(
            "/v1/responses", {"model": "any", "input": "Until when can I use last year's leave?"}
        )
        found["run_id"].append(run)
        found["response_id"].append(response["id"])
    for conversation in call("/chat-history")[1][:QUESTIONS]:
        found["conversation_id"].append(conversation["id"])
        messages = call(f"/chat-history/{conversation['id']}/messages")[1]
        answers = [each for each in messages if each["role"] == "assistant"]
        found["message_id"] += [each["id"] for each in answers]
        found["public_id"] += [source["id"][:36] for each in answers for source in each["sources"]]
        if "Authorization" in headers:  # guests share nothing
            share = {"conversation_id": conversation["id"], "everyone": True}
            found["share_id"].append(call("/api/shares", share)[1]["id"])
    if "Authorization" in headers:  # guests add nothing either
        found["document_id"] = [put(f"leave-{number}") for number in range(QUESTIONS)]
        found["project_id"] = [call("/api/projects", {"name": "Leave"})[1]["id"]]
        hook = call("/api/webhooks", {"url": "https://hooks.invalid/", "events": ["document.ready"]})[1]
        found["webhook_id"] = [hook["id"]]
        found["delivery_id"] = [call(f"/api/webhooks/{hook['id']}/test", {})[1]["id"]]
    if found["public_id"]:
        found["page"] = [1]
    return {name: ids for name, ids in found.items() if ids}


def schemathesis_command(site, headers, caller, examples, phases, paths, folder):
    command = [SCHEMATHESIS, "--config-file", HERE / "schemathesis.toml", "--no-color"]
    # Without an option that selects checks, all run, except those that schemathesis.toml switches off.
    command += ["run", f"{site.url}/api/schema/"]
    command += ["--max-examples", str(examples), "--phases", phases, "--include-path-regex", paths]
    if phases == "stateful":
        # Hypothesis ends a suite if a repeated sequence of requests gets other responses, as it does on a
        # site that stores data.
        command += ["--max-time", str(STATEFUL_SECONDS)]
    if caller == "guest":
        # The site accepts requests without credentials: each is from a new guest.
        command += ["--exclude-checks", "ignored_auth"]
    if folder:
        report = Path(folder).resolve() / f"{caller}-{time.time_ns()}.ndjson"
        command += ["--report", "ndjson", "--report-ndjson-path", report]
    for name, value in headers.items():
        command += ["--header", f"{name}: {value}"]
    return command


def main():
    defaults = ("50", "all", PHASES, ".", "")
    examples, callers, phases, paths, folder = [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]]
    failed = False
    for caller in CALLERS if callers == "all" else (callers,):
        with conformance_site(caller) as (site, headers, known):
            print(f"== {caller}, {examples} examples of {phases} at {paths}", flush=True)
            begun = time.monotonic()
            command = schemathesis_command(site, headers, caller, examples, phases, paths, folder)
            environment = os.environ | {"CONFORMANCE_IDS": json.dumps(known)}
            failed |= bool(subprocess.run(command, cwd=BASE, env=environment, check=False).returncode)
            print(f"== {time.monotonic() - begun:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
