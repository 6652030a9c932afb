"""How fast documents become searchable in a running site, and how much memory that takes.

    .venv-dev/bin/python benchmarks/bench_ingestion.py [--documents N] [--many N] [--workers N]

The site is started by `manage.py up` with its own embedded database, and every step is included: upload over
HTTP, worker processes, reading processes, and the index of vectors. The texts are sentences of made-up words,
so that no two vectors are the same.
"""

from site_ready import ROOT  # imported first, because it adds the project to the path of the imports below

# isort: split
import argparse
import random
import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from statistics import median

import psutil
import psycopg

from chatsite.tests.server import Site, reading_parameters, temporary_folder
from ingestion.tests import building

PASSAGES = 60  # approximate number of passages in each text document
AT_ONCE = 20  # files in one request
SYLLABLES = [a + b + c for a in "bdfglmnprst" for b in "aeiou" for c in ("", "n", "r", "s", "l")]
NONE_LEFT = "SELECT NOT EXISTS (SELECT FROM procrastinate_jobs WHERE task_name = 'ingestion.read')"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=150)
    parser.add_argument("--many", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    wanted = parser.parse_args()
    folder = temporary_folder()
    try:
        with Site(folder, workers=wanted.workers) as site:
            bench = Bench(site, random.Random(1))
            bench.rate(wanted.documents)
            bench.pdf()
            bench.many(wanted.many)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """A running site, a session that adds documents, and a connection to its database."""

    def __init__(self, site: Site, chance: random.Random) -> None:
        self.site, self.chance = site, chance
        self.words = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(20_000)]
        self.session = site.sign_in("employee")
        self.session.get("/documents/add/")
        self.database = psycopg.connect(**reading_parameters(site.folder), autocommit=True)
        site.wait_for_worker()
        self.wait()

    def rate(self, documents: int) -> None:
        """Print passages per second, and the CPU time that each kind of process spent on them."""
        files = [(f"{number}.md", self.text(PASSAGES).encode()) for number in range(documents)]
        before, usage, memory = self.passages(), Usage(self.site), Memory(self.site)
        start = time.monotonic()
        with memory:
            for first in range(0, documents, AT_ONCE):
                self.upload(files[first : first + AT_ONCE])
            sent = time.monotonic() - start
            self.wait()
        seconds, passages = time.monotonic() - start, self.passages() - before
        print(f"{documents} documents, {passages} passages, {self.count('ingestion_vector')} vectors in all")
        print(
            f"  {passages / seconds:.0f} passages per second ({seconds:.1f} s; the uploads took {sent:.1f} s)"
        )
        print("  CPU seconds per 1,000 passages:", usage.since(passages / 1_000))
        print("  peak memory:", memory)

    def pdf(self, rounds: int = 5) -> None:
        """Print the seconds from the upload of a PDF of 100 pages until it is searchable."""
        times, usage = [], Usage(self.site)
        for number in range(rounds):
            data = building.pdf(*[[self.sentence() for _ in range(30)] for _ in range(100)])
            start = time.monotonic()
            self.upload([(f"hundred-{number}.pdf", data)])
            self.wait(0.02)
            times.append(time.monotonic() - start)
        passages = self.one(
            "SELECT count(*) FROM ingestion_passage AS passage JOIN ingestion_document AS document"
            " ON document.id = passage.document_id WHERE document.name = 'hundred-0.pdf'"
        )
        print(f"a PDF of 100 pages ({len(data) / 1e6:.1f} MB, {passages} passages)")
        print(f"  is searchable after {median(times):.1f} s (slowest {max(times):.1f} s)")
        print("  CPU seconds of each:", usage.since(rounds))

    def many(self, documents: int) -> None:
        """Print how the memory of workers, and of processes that fork readers, grows over many documents."""
        sizes: dict[str, list[float]] = {"worker": [], "reader": []}
        for first in range(0, documents, AT_ONCE):
            self.upload([(f"small-{first + each}.md", self.text(2).encode()) for each in range(AT_ONCE)])
            self.wait()
            for kind, values in sizes.items():
                values.append(self.megabytes(KINDS[kind]))
        print(f"{documents} small documents; megabytes of all processes of a kind:")
        for kind, values in sizes.items():
            # By then the processes have loaded everything that is loaded only once.
            late = values[len(values) // 5 :]
            print(
                f"  {kind}: {values[0]:.0f} after the first {AT_ONCE}, {values[-1]:.0f} at the end;"
                f" slope {slope(late) * 1_000 / AT_ONCE:+.1f} per 1,000"
            )

    def megabytes(self, module: str) -> float:
        return sum(process.memory_info().rss for process in self.site.children(module)) / 1e6

    def upload(self, files: list[tuple[str, bytes]]) -> None:
        boundary = uuid.uuid4().hex
        parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="who"\r\n\r\nme\r\n'.encode()]
        for name, data in files:
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            parts += [head.encode(), b"Content-Type: application/octet-stream\r\n\r\n", data, b"\r\n"]
        body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Accept": "application/json"}
        answer = self.session.request("POST", "/documents/add/", body, kind, timeout=120)
        assert answer.status == 201, answer.text[:300]

    def wait(self, seconds: float = 0.1) -> None:
        """Wait until all documents are read."""
        while not self.one(NONE_LEFT):
            time.sleep(seconds)
        self.database.execute("SET chatsite.reader = 'everything'")
        failed = self.one("SELECT count(*) FROM ingestion_document WHERE status <> 'ready'")
        assert not failed, f"{failed} documents are not ready."

    def passages(self) -> int:
        return self.count("ingestion_passage")

    def count(self, table: str) -> int:
        return int(self.one(f"SELECT count(*) FROM {table}"))

    def one(self, query: str) -> int:
        row = self.database.execute(query).fetchone()
        assert row is not None
        return int(row[0] or 0)

    def sentence(self) -> str:
        return " ".join(self.chance.choices(self.words, k=self.chance.randint(8, 16))).capitalize() + "."

    def text(self, passages: int) -> str:
        paragraphs = (" ".join(self.sentence() for _ in range(5)) for _ in range(passages))
        return f"# {self.sentence()}\n\n" + "\n\n".join(paragraphs)


KINDS = {
    "worker": "chatsite.server.worker",
    "web": "chatsite.server.serving.web_process",
    "reader": "ingestion.parsing.forkserver",  # and the reading processes that it forks
    "postgres": "postgres",
}


class Usage:
    """CPU time of the site's processes; that of short-lived processes counts for their parents."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.before = self.now()

    def now(self) -> dict[str, float]:
        spent = dict.fromkeys(KINDS, 0.0)
        for kind in ("worker", "web", "reader"):
            for process in self.site.children(KINDS[kind]):
                times = process.cpu_times()
                spent[kind] += times.user + times.system
                if kind == "reader":
                    spent[kind] += times.children_user + times.children_system
        postgres = self.site.postgres()
        for process in [postgres, *postgres.children()]:
            times = process.cpu_times()
            spent["postgres"] += times.user + times.system
        return spent

    def since(self, divisor: float) -> str:
        now = self.now()
        return ", ".join(f"{kind} {(now[kind] - self.before[kind]) / divisor:.2f}" for kind in KINDS)


class Memory:
    """The peak memory of one process of each kind, sampled ten times a second."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.peaks = dict.fromkeys(("worker", "reader"), 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        return ", ".join(f"{kind} {size / 1e6:.0f} MB" for kind, size in self.peaks.items())

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            for kind, size in self._sizes():
                self.peaks[kind] = max(self.peaks[kind], size)

    def _sizes(self) -> Iterator[tuple[str, int]]:
        for kind in self.peaks:
            for process in self.site.children(KINDS[kind]):
                try:
                    yield kind, process.memory_info().rss
                except psutil.Error:
                    continue


def slope(values: list[float]) -> float:
    """The slope of the least-squares line through the values, per value."""
    middle = (len(values) - 1) / 2
    mean = sum(values) / len(values)
    above = sum((place - middle) * (value - mean) for place, value in enumerate(values))
    return above / max(1e-9, sum((place - middle) ** 2 for place in range(len(values))))


if __name__ == "__main__":
    assert ROOT
    main()
