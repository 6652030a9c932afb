"""Measures how fast programs can add identical and new documents, and search at the same time.

    .venv-dev/bin/python benchmarks/bench_documents_api.py [DOCUMENTS]      500 new documents by default

Starts a site with the demo's documents, one web process and one worker. Each number is compared with another
number of the same run: a search over HTTP with the same search called in-process, and searches while
documents are being read with searches on the idle site. Targets: of 1,000 identical PUTs, only one is read;
5,000 small documents are read per hour, while a search takes at most 60 ms (p95); HTTP adds at most 10 ms to
a search (p95).
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psycopg

from benchmarks.clients.run import api_key, wait_for_handbook
from chatsite.tests.server import BASE, Site, reading_parameters, temporary_folder

DOCUMENTS, EQUAL, SEARCHES, CALLERS = 500, 1_000, 300, 4
# Documents per hour (with a margin above the target), and the number of documents sent at this pace.
PACE, PACED = 6_000, 60
QUERIES = (
    "carry over leave", "working abroad", "expenses for hotels", "first aid", "sick note", "remote work",
    "notice period", "parental leave for partners", "fire drill", "travel by train",
)  # fmt: skip
WORDS = [
    "invoice",
    "ledger",
    "vessel",
    "harbour",
    "crane",
    "permit",
    "shift",
    "roster",
    "cargo",
    "manifest",
    "pilot",
    "dock",
]
# The same searches, called in a process of the site's own code.
IN_PROCESS = """
import json, time
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db.threads import reading_as
from ingestion.search.retrieval import search
queries, times = QUERIES, []
person = User.objects.get(username="employee").pk
with reading_as(person):
    for number in range(len(queries) * 2 + COUNT):
        begun = time.perf_counter()
        search(Principal(person, "command"), queries[number % len(queries)], top=5)
        times.append((time.perf_counter() - begun) * 1000)
print(json.dumps(times[len(queries) * 2:]))
"""


class Caller:
    """An HTTP connection that authenticates with an API key."""

    def __init__(self, site: Site, key: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(site.url).netloc)
        self.headers = {"Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, dict, float]:
        """Send a request, and return the status, the JSON body, and the milliseconds that it took."""
        begun = time.perf_counter()
        self.connection.request(method, path, body, self.headers | {"Content-Type": kind})
        response = self.connection.getresponse()
        read = response.read()
        return response.status, json.loads(read), (time.perf_counter() - begun) * 1000

    def search(self, number: int) -> float:
        body = json.dumps({"query": QUERIES[number % len(QUERIES)], "limit": 5}).encode()
        status, found, taken = self.ask("POST", "/api/search", body, "application/json")
        assert status == 200, found
        return taken

    def put(self, name: str, text: str) -> int:
        """Add a document and return the status; retries while the site is busy."""
        boundary = uuid.uuid4().hex
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}.md"\r\n'
            f"Content-Type: text/markdown\r\n\r\n{text}\r\n--{boundary}--\r\n"
        ).encode()
        while True:
            kind = f"multipart/form-data; boundary={boundary}"
            status, answer, _ = self.ask("PUT", f"/api/documents/{name}", body, kind)
            if status not in (429, 503):
                assert status in (200, 201, 202), answer
                return status
            time.sleep(0.2)


def main() -> None:
    wanted = int(sys.argv[1]) if sys.argv[1:] else DOCUMENTS
    folder = temporary_folder()
    limits = {"CHATSITE_USER_QUESTIONS_PER_MINUTE": "100000", "CHATSITE_LOOP_WATCHDOG_SECONDS": "0"}
    try:
        with Site(folder, **limits) as site:
            wait_for_handbook(site)
            key = api_key(site, "search", "documents:read", "documents:write")
            measure_search(site, key)
            measure_equal(site, key)
            measure_new(site, key, wanted)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_inside(site: Site, program: str) -> str:
    """Run a program with the site's code, settings and database, and return its output."""
    environment = os.environ | {
        "CHATSITE_DATA_DIR": str(site.folder),
        "DJANGO_SETTINGS_MODULE": site.settings,
    }
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", program]
    done = subprocess.run(command, cwd=BASE, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def measure_search(site: Site, key: str) -> None:
    caller = Caller(site, key)
    for number in range(20):
        caller.search(number)
    over_http = [caller.search(number) for number in range(SEARCHES)]
    program = IN_PROCESS.replace("COUNT", str(SEARCHES)).replace("QUERIES", repr(list(QUERIES)))
    called = json.loads(run_inside(site, program).splitlines()[-1])
    (http50, http95), (own50, own95) = middle(over_http), middle(called)
    print(f"search, ms: called {own50:.1f} (p95 {own95:.1f}), over HTTP {http50:.1f} (p95 {http95:.1f})")
    print(f"HTTP adds {http95 - own95:.1f} at p95: {verdict(http95 - own95 <= 10)}", flush=True)


def measure_equal(site: Site, key: str) -> None:
    begun = time.perf_counter()
    together(CALLERS, EQUAL, lambda caller, _: caller.put("equal", "# Equal\n\nAlways the same."), site, key)
    seconds = time.perf_counter() - begun
    wait_until_read(site)
    with psycopg.connect(**reading_parameters(site.folder)) as session:
        question = "SELECT count(*), max(version) FROM ingestion_document WHERE name = 'equal.md'"
        documents, version = session.execute(question).fetchone()
    print(
        f"{EQUAL} equal PUTs by {CALLERS} callers: {EQUAL / seconds:.0f} a second, {documents} document,",
        end=" ",
    )
    print(f"read {version} times: {verdict((documents, version) == (1, 1))}", flush=True)


def measure_new(site: Site, key: str, wanted: int) -> None:
    """Add documents as fast as the site accepts them, then at the target's pace, and search meanwhile."""
    an_hour, fast = filled(site, key, wanted, "fast", 0)
    print(f"{wanted} small documents at once: {an_hour:,.0f} an hour: {verdict(an_hour >= 5_000)};", end=" ")
    print(f"searches meanwhile: p95 {fast:.1f} ms")
    an_hour, paced = filled(site, key, PACED, "paced", 3_600 / PACE)
    print(
        f"{PACED} at {an_hour:,.0f} an hour; searches meanwhile: p95 {paced:.1f} ms: {verdict(paced <= 60)}",
        flush=True,
    )


def filled(site: Site, key: str, wanted: int, prefix: str, pause: float) -> tuple[float, float]:
    """The documents read per hour, and the p95 of searches meanwhile; callers pause after each document."""
    searching, over = [], threading.Event()

    def search() -> None:
        caller = Caller(site, key)
        while not over.wait(0.1):
            searching.append(caller.search(len(searching)))

    searcher = threading.Thread(target=search)
    searcher.start()
    begun = time.perf_counter()

    def put(caller: Caller, number: int) -> None:
        caller.put(f"{prefix}-{number}", small(number))
        time.sleep(pause)

    try:
        together(1 if pause else CALLERS, wanted, put, site, key)
        wait_until_read(site)
    finally:
        over.set()
        searcher.join()
    return wanted / (time.perf_counter() - begun) * 3_600, middle(searching)[1]


def small(number: int) -> str:
    words = [WORDS[(number * step) % len(WORDS)] for step in range(1, 60)]
    return f"# Note {number}\n\n" + " ".join(words) + f".\n\nThe reference of this note is {number * 7919}."


def together(callers: int, times: int, act: Callable[[Caller, int], object], site: Site, key: str) -> None:
    """Call a function `times` times in total, from `callers` concurrent callers."""
    numbers, faults = iter(range(times)), []

    def call() -> None:
        caller = Caller(site, key)
        try:
            for number in numbers:
                act(caller, number)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def wait_until_read(site: Site) -> None:
    unread = "SELECT count(*) FROM ingestion_document WHERE status NOT IN ('ready', 'failed')"
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as session:
        while session.execute(unread).fetchone() != (0,):
            time.sleep(0.1)


def middle(times: list[float]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    cuts = quantiles(times, n=20)
    return cuts[9], cuts[18]


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


if __name__ == "__main__":
    main()
