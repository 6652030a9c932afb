"""The checks before a release: `make release VERSION=0.3.0`, on a clean checkout.

Runs all steps, then lists their results, and exits with status 1 if any has failed. Nothing is published.
Needs the package index and takes half an hour; `--only WORD` runs only the steps with this word in their
title.
"""

import argparse
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ".venv-dev/bin/python"
START_SECONDS = 120
READING_SECONDS = 60  # time limit for reading the sample documents
QUESTION = "How many days of annual leave do I get?"  # about the sample documents
SOURCE = re.compile(r"\[.+\.pdf#page=\d+\]")
KEY = re.compile(r"[A-Za-z0-9_-]{30,}")


class Failed(Exception):
    """A step has failed; the message is a sentence."""


def run(command: str, folder: Path = ROOT, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """Run and print a command; returns its standard output. Raises Failed."""
    print(f"$ {command}", flush=True)
    done = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout[-5000:])
        raise Failed(f"{command} ended with status {done.returncode}.")
    return done.stdout


def checkout(version: str) -> None:
    if changed := run("git status --porcelain"):
        raise Failed(f"Files are not committed: {changed.split()[1]} …")
    for name, pattern in (
        ("pyproject.toml", r'^version = "(.+)"$'),
        ("deploy/helm/Chart.yaml", r"^version: (.+)$"),
        ("deploy/helm/Chart.yaml", r'^appVersion: "(.+)"$'),
    ):
        found = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
        if found is None or found[1] != version:
            raise Failed(f"{name} has the version {found[1] if found else '“”'}, not {version}.")
    _, *sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    if sections[0].strip() == "Unreleased":  # an empty section
        del sections[0]
    if not sections[0].startswith(f"{version} ("):
        raise Failed(
            f"The changelog begins with “{sections[0].splitlines()[0]}”, not with {version} and its day."
        )


def licences(version: str) -> None:
    run("make licences")
    if run("git status --porcelain docs/third-party-licences.md"):
        raise Failed(
            "docs/third-party-licences.md does not match the lock: commit what `make licences` has written."
        )


def package(version: str) -> None:
    """Test the wheel in an empty folder: get a cited answer, and rehearse restoring a backup."""
    run("make package")
    wheel = ROOT / "dist" / f"chatsite-{version}-py3-none-any.whl"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # started by root, PostgreSQL runs as another user, which needs access
        run(f"{sys.executable} -m venv venv", folder)
        run(f"venv/bin/pip install -q --require-hashes --no-deps -r {ROOT / 'requirements.txt'}", folder)
        run(f"venv/bin/pip install -q --no-deps {wheel}", folder)
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        site = subprocess.Popen(
            [folder / "venv/bin/chatsite", "up"],
            cwd=folder,
            env=os.environ | {"PORT": str(port)},
            stdout=subprocess.DEVNULL,
        )
        try:
            begun = time.monotonic()
            while not is_ready(port):
                if site.poll() is not None or time.monotonic() > begun + START_SECONDS:
                    raise Failed("The installed site does not start.")
                time.sleep(0.2)
            key = KEY.findall(run("venv/bin/chatsite create_api_key employee --name release", folder))[-1]
            demand_citation(port, key)
            run("venv/bin/chatsite backup site.backup", folder)
            run("venv/bin/chatsite restore site.backup --verify", folder)
        finally:
            site.terminate()
            site.wait()


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return True
    except OSError:
        return False


def demand_citation(port: int, key: str) -> None:
    """Repeat the question until the answer cites a page of a PDF.

    The site answers from the documents that it has read so far. Raises Failed after READING_SECONDS.
    """
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/chat",
        json.dumps({"messages": [{"role": "user", "content": QUESTION}]}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    deadline = time.monotonic() + READING_SECONDS
    while True:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)["message"]["content"]
        if SOURCE.search(answer):
            return
        if time.monotonic() > deadline:
            raise Failed(f"The installed site answers without the right source: {answer[:200]}")
        time.sleep(0.5)


def command(line: str, **variables: str) -> Callable[[str], None]:
    def step(version: str) -> None:
        run(line, variables=variables)

    return step


STEPS: dict[str, Callable[[str], None]] = {
    "checkout, versions and changelog": checkout,
    "format, lint, types, imports, migrations, settings": command("make check"),
    "licences": licences,
    "lock on every platform": command("make platforms"),
    "package, from nothing to an answer and a backup": package,
    "suite": command("make test"),
    "upgrade from the last release, and back, under load": command(
        f"{PYTHON} -m pytest -q chatsite/tests/code/test_two_versions.py", CHATSITE_TEST_ROUNDS="20"
    ),
    "published clients": command(f"{PYTHON} -m benchmarks.clients.run"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    results = []
    for title, step in STEPS.items():
        if options.only not in title:
            continue
        print(f"\n== {title}", flush=True)
        begun = time.monotonic()
        try:
            step(options.version)
        except (Failed, OSError, ValueError, LookupError) as error:
            results.append((title, begun, f"FAILED: {error}"))
        else:
            results.append((title, begun, "ok"))
        print(results[-1][2], f"after {time.monotonic() - begun:.0f} s", flush=True)
    print()
    for title, _, result in results:
        print(f"{title}: {result}")
    return int(any(result != "ok" for *_, result in results))


if __name__ == "__main__":
    sys.exit(main())
