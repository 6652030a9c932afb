"""Processes killed in turn during uploads: each acknowledged file is read or refused with a reason, once.

CHATSITE_TEST_ROUNDS says how many kills (3: a worker, the web process, PostgreSQL).
"""

import io
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from http.client import HTTPException
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from chatsite.tests.failures.test_kills import postgresql, web, worker
from chatsite.tests.faults import PASSWORD, FaultSite, Upstream, new_token
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.server import BASE, prepared, temporary_folder

pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]

ROUNDS = int(os.environ.get("CHATSITE_TEST_ROUNDS", "3"))
KILLS = (worker, web, postgresql)
PEOPLE = 3
MAX_SENT = 8 * ROUNDS  # requests of each person
BETWEEN_SECONDS = 2.5  # from one kill to the next, at most
READ_SECONDS = 150  # until all files are read: a killed worker's job starts again after a minute
BOUNDARY = "b0undary"
LEFT = """
    SELECT count(*) FROM procrastinate_jobs
    WHERE status IN ('todo', 'doing') AND task_name = 'ingestion.read'
"""
DOCUMENTS = """
    SELECT document.name, document.folder, document.status, document.reason, document.file,
        document.part_of_id IS NOT NULL,
        (SELECT string_agg(passage.content, ' ') FROM ingestion_passage AS passage
         WHERE passage.document_id = document.id)
    FROM ingestion_document AS document
"""
# The worker's nightly job, which removes files older than a day.
CLEAN = """
import datetime, django
from chatsite.db.threads import read_everything_by_default
read_everything_by_default()
django.setup()
from ingestion import tasks
tasks.ORPHAN_AGE = datetime.timedelta()
tasks.remove_orphans(0)
"""


def archive(files):
    """A zip file of these texts."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return target.getvalue()


class Uploading:
    """Adds single files, several at once, new versions and archives, until it is stopped.

    `sent` has the words that each name was sent with, in their order, and `acknowledged` how many of them had
    been sent when the last acknowledgement came.
    """

    def __init__(self, site):
        self.site, self.name = site, new_token("u")
        site.caller(self.name)
        self.session = site.sign_in(self.name, PASSWORD)
        self.sent, self.acknowledged, self.refused = {}, {}, []
        self.failures = {}  # {name: the refusals of its versions}
        self.going, self.number = True, 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self):
        self.going = False
        self.thread.join(60)
        assert not self.thread.is_alive()

    def _run(self):
        acts = (self._single, self._several, self._replaced, self._archive, self._broken)
        while self.going and self.number < MAX_SENT:
            self.number += 1
            acts[self.number % len(acts)]()

    def _text(self, name):
        word = new_token("w")
        self.sent.setdefault(name, []).append(word)
        return f"# {name}\n\n" + f"The word of this version is {word}.\n\n" + "More words follow here. " * 200

    def _single(self):
        name = f"{self.name}-{self.number}.md"
        self._send({name: self._text(name).encode()})

    def _several(self):
        names = [f"{self.name}-{self.number}-{part}.md" for part in range(4)]
        self._send({name: self._text(name).encode() for name in names})

    def _replaced(self):
        name = f"{self.name}-again.md"
        self._send({name: self._text(name).encode()})

    def _archive(self):
        """An archive of three files, which replaces the person's previous one."""
        names = [f"{self.name}-part-{part}.md" for part in range(3)]
        packed = archive({name: self._text(name) for name in names})
        self._send({f"{self.name}.zip": packed}, names)

    def _broken(self):
        name = f"{self.name}-{self.number}.docx"
        self.sent[name] = [""]
        self._send({name: b"PK\x03\x04 this is no document"})

    def _send(self, files, names=()):
        parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="who"\r\n\r\nme\r\n'.encode()]
        for name, data in files.items():
            head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
            parts += [head.encode(), data, b"\r\n"]
        headers = {
            "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
            "Accept": "application/json",
        }
        body = b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])
        counts = {name: len(self.sent[name]) for name in [*names, *files] if name in self.sent}
        try:
            answer = self.session.request("POST", "/documents/add/", body, headers, 30)
        except (OSError, HTTPException) as error:  # any error that a killed site causes
            self._failed(counts, repr(error))
            return
        if answer.status not in (201, 422):  # a broken file is accepted, and fails when it is read
            self.refused.append(answer.status)
            self._failed(counts, answer.status)
            return
        accepted = {each["name"] for each in answer.json()["documents"]}
        within = set(names) if f"{self.name}.zip" in accepted else set()
        self.acknowledged |= {name: counts[name] for name in counts if name in accepted | within}

    def _failed(self, counts, why):
        for name, count in counts.items():
            self.failures.setdefault(name, {})[count] = why
        time.sleep(0.2)


def read_to_the_end(site):
    deadline = time.monotonic() + READ_SECONDS
    while True:
        try:
            if site.query(LEFT) == [(0,)]:
                return
        except Exception:
            pass  # PostgreSQL is not running yet
        assert time.monotonic() < deadline, "documents are left unread"
        time.sleep(0.5)


def clean(site):
    """Remove files without a document, as the worker does at night."""
    values = os.environ | site.environment | {"DATABASE_URL": make_conninfo(**site.parameters)}
    values |= {"CHATSITE_DATA_DIR": str(site.folder), "DJANGO_SETTINGS_MODULE": "chatsite.settings"}
    subprocess.run([sys.executable, "-c", CLEAN], cwd=BASE, env=values, check=True, timeout=120)


def version_of(site, file, words):
    """The number of the version with these words that a stored file contains."""
    text = Path(site.folder, "files", file).read_text()
    return [place for place, word in enumerate(words, 1) if word in text]


def judge(site, people, stored):
    """Fail unless each acknowledged file is one document with a whole file; `stored` lists all files."""
    found = {}
    rows = site.query(DOCUMENTS)
    for name, _, *row in rows:
        found.setdefault(name, []).append(row)
    for person in people:
        for name, words in person.sent.items():
            known = found.get(name, [])
            assert len(known) <= 1, f"{name} is there {len(known)} times"
            acknowledged = person.acknowledged.get(name, 0)
            if not known:
                assert not acknowledged, f"{name} was acknowledged and is lost"
                continue
            [(status, reason, file, _, text)] = known
            assert status in ("ready", "failed"), (name, status)
            assert (status == "failed") == bool(reason), (name, status, reason)
            if name.endswith(".docx"):
                assert status == "failed"
                continue
            assert status == "ready", (name, reason)
            places = [place for place, word in enumerate(words, 1) if word in text]
            assert len(places) == 1, f"{name} is a mixture, or of nobody"
            assert places[0] >= acknowledged, (
                f"{name} is version {places[0]}, in its file {version_of(site, file, words)}; "
                f"{acknowledged} of {len(words)} was acknowledged; {person.failures.get(name)}"
            )
    files = {row[4] for row in rows}
    assert len(files) == len(rows), "two documents share a file"
    assert files <= stored, "documents without a file"
    assert stored == files, "files without a document"


def under_kills(site, rounds=ROUNDS):
    people = [Uploading(site) for _ in range(PEOPLE)]
    for number in range(rounds):
        time.sleep(random.uniform(0.5, BETWEEN_SECONDS))
        KILLS[number % len(KILLS)](site)
        site.wait_until_ready(60)
    time.sleep(1)
    for person in people:
        person.stop()
    read_to_the_end(site)
    return people


@pytest.fixture
def killed():
    folder = temporary_folder()
    try:
        with (
            Upstream() as upstream,
            FaultSite(prepared(folder, demo=False), upstream, workers=2) as site,
        ):
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_each_acknowledged_upload_is_one_complete_document(killed):
    people = under_kills(killed)
    clean(killed)
    media = Path(killed.folder, "files")
    stored = {str(path.relative_to(media)) for path in media.rglob("*") if path.is_file()}
    acknowledged = sum(len(person.acknowledged) for person in people)
    assert acknowledged > 2 * PEOPLE
    judge(killed, people, stored)
    refused = {status for person in people for status in person.refused}
    killed.lines("")  # reads the output
    assert refused <= {503}, [line for line in killed.output.splitlines() if "Traceback" in line]
    sys.stdout.write(f"{acknowledged} files acknowledged\n")
