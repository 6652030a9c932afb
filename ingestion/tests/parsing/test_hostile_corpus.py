"""The corpus of hostile files through the upload form and the worker of a running site."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.server import BASE, TOKEN, Site, prepared, reading_parameters, temporary_folder
from ingestion.tests.hostile import GOOD, corpus, names

PASSWORD = "a-long-pass-phrase-7"
LIMITS = {
    "CHATSITE_READING_SECONDS": "5",
    "CHATSITE_READING_MEMORY_BYTES": "700000000",
    "CHATSITE_DOCUMENT_MAX_UNPACKED_BYTES": "200000000",
    "CHATSITE_DOCUMENT_MAX_PAGES": "500",
    "CHATSITE_DOCUMENT_MAX_CHARACTERS": "1000000",
}
WORKER_BYTES = 900_000_000
SECONDS = 600  # for the whole corpus; on two free cores it takes 25
STATES = "SELECT name, status, reason FROM ingestion_document"
BOUNDARY = "hostile-boundary"
pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]


@pytest.fixture(scope="module")
def listener():
    """An address that files refer to; nothing must connect to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture(scope="module")
def strict():
    folder = temporary_folder()
    try:
        with Site(prepared(folder, demo=False), demo=False, **LIMITS) as site:
            environment = os.environ | {
                "CHATSITE_DATA_DIR": str(folder),
                "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            }
            command = [sys.executable, "manage.py", "createsuperuser", "--noinput", "--username=ada"]
            subprocess.run([*command, "--email=ada@example.org"], cwd=BASE, env=environment, check=True)
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def upload(session, files):
    """Send the form with all files, with names that no browser would send; return the response."""
    token = TOKEN.search(session.get("/documents/add/").text).group(1)
    parts = [_part('name="csrfmiddlewaretoken"', token), _part('name="who"', "everyone")]
    for name, data in files.items():
        quoted = name.replace("\\", "\\\\").replace('"', "%22").replace("\n", "%0A")
        parts.append(_part(f'name="file"; filename="{quoted}"', data))
    body = b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "Accept": "application/json"}
    return session.request("POST", "/documents/add/", body, kind, timeout=120)


def _part(disposition, data):
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
    data = data if isinstance(data, bytes) else data.encode()
    return head.encode("utf-8", "surrogateescape") + data + b"\r\n"


def outcomes(site):
    """Wait until all files are read; return {name: (status, reason)} and the worker's peak memory."""
    most = 0
    deadline = time.monotonic() + SECONDS
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        while True:
            rows = connection.execute(STATES).fetchall()
            if all(status in ("ready", "failed") for _, status, _ in rows):
                return rows, most
            assert time.monotonic() < deadline, [row for row in rows if row[1] not in ("ready", "failed")]
            most = max([most, *map(_memory, site.children("chatsite.server.worker"))])
            time.sleep(0.2)


def _memory(process):
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def test_each_hostile_file_ends_with_its_reason_and_a_good_one_after_it_is_read(strict, listener):
    files = corpus(f"http://127.0.0.1:{listener.getsockname()[1]}")
    session = strict.sign_in("ada", PASSWORD)
    reply = upload(session, {name: data for name, (data, _) in files.items()} | {"good.md": GOOD}).json()
    assert reply["refused"] == [], reply
    assert len(reply["documents"]) == len(files) + 1
    rows, memory = outcomes(strict)
    found = {name: (status, reason) for name, status, reason in rows}
    wrong = {
        name: (expected, *found[name])
        for name, (_, expected) in files.items()
        if not re.search(_pattern(expected), found[name][1])
        or (found[name][0] == "ready") == bool(found[name][1])
    }
    assert wrong == {}, "\n".join(map(repr, wrong.items()))
    assert found["good.md"] == ("ready", "")
    assert memory < WORKER_BYTES
    with pytest.raises(BlockingIOError):  # nothing has connected
        listener.accept()
    assert written_outside(strict) == []


def test_misleading_names_are_made_harmless(strict):
    session = strict.sign_in("ada", PASSWORD)
    for name, (data, expected) in names().items():
        reply = upload(session, {name: data})
        assert reply.status in (201, 422), (name, reply.text[:300])
        for document in reply.json()["documents"]:
            rows, _ = outcomes(strict)
            status, reason = next(
                (status, reason) for kept, status, reason in rows if kept == document["name"]
            )
            assert (status, expected in reason) == ("failed" if expected else "ready", True), (name, reason)
            assert re.fullmatch(r"[^/\\\x00-\x1f\u202a-\u202e]{1,200}", document["name"]), name
    assert written_outside(strict) == []


def written_outside(site):
    """The names of files that a hostile name or archive has written outside its folder."""
    inside = [name for _, _, names in os.walk(site.folder) for name in names]
    around = [
        path.name for folder in (tempfile.gettempdir(), "/etc", BASE) for path in Path(folder).iterdir()
    ]
    return [name for name in (*inside, *around) if "evil-" in name]


def _pattern(expected):
    return "|".join(re.escape(part) if part else "^$" for part in expected.split("|"))
