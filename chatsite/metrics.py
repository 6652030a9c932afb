"""Metrics for Prometheus, collected from all processes of a machine.

Each process counts in memory, and writes its values to a file every few seconds. The web process that gets a
request for `/metrics` adds up the files of its machine. Counters of ended processes remain in the sums, so
that a restart does not reduce them. The files are not memory-mapped: if the disk were full, the first write
to a mapped page would kill the process.
"""

import contextlib
import fcntl
import json
import math
import os
import resource
import secrets
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

WRITE_SECONDS = 5.0
ALIVE_SECONDS = 20.0  # a process counts as alive for this time after its last write
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ENDED = "ended"  # the file with the sums of ended processes
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]
Numbers = list[float]  # one value; for a histogram, the counts of its buckets, the overflow, and the sum
Snapshot = Mapping[str, Sequence[tuple[Sequence[str], Numbers]]]
Read = Callable[[], Mapping[Labels, float]]


class Metric:
    """A metric with its values by labels; a value of a histogram consists of several numbers."""

    kind = "counter"
    size = 1  # length of Numbers

    def __init__(self, name: str, description: str, labels: Sequence[str] = ()) -> None:
        self.name, self.description, self.labels = f"chatsite_{name}", description, tuple(labels)
        self.values: dict[Labels, Numbers] = {}
        METRICS[self.name] = self

    def read(self) -> list[tuple[Labels, Numbers]]:
        """Current values of this process."""
        with _lock:
            return [(labels, list(numbers)) for labels, numbers in self.values.items()]

    def lines(self, labels: Sequence[str], numbers: Numbers) -> Iterator[str]:
        yield f"{self.name}{_labelled(zip(self.labels, labels, strict=True))} {_number(numbers[0])}"


class Counter(Metric):
    """A counter. Label values in `known` are reported as 0 until they are counted."""

    def __init__(
        self, name: str, description: str, labels: Sequence[str] = (), known: Sequence[str] = ()
    ) -> None:
        super().__init__(name, description, labels)
        self.values = {(value,): [0.0] for value in known}

    def add(self, *labels: str, amount: float = 1) -> None:
        with _lock:
            self.values.setdefault(labels, [0.0])[0] += amount


class Histogram(Metric):
    kind = "histogram"

    def __init__(
        self, name: str, description: str, labels: Sequence[str] = (), bounds: Sequence[float] = SECONDS
    ) -> None:
        super().__init__(name, description, labels)
        self.bounds, self.size = tuple(bounds), len(bounds) + 2

    def observe(self, value: float, *labels: str) -> None:
        with _lock:
            numbers = self.values.get(labels)
            if numbers is None:
                numbers = self.values[labels] = [0.0] * self.size
            numbers[bisect_left(self.bounds, value)] += 1
            numbers[-1] += value

    def lines(self, labels: Sequence[str], numbers: Numbers) -> Iterator[str]:
        named = [*zip(self.labels, labels, strict=True)]
        count = 0.0
        for bound, inside in zip((*self.bounds, math.inf), numbers[:-1], strict=True):
            count += inside
            yield f"{self.name}_bucket{_labelled([*named, ('le', _number(bound))])} {_number(count)}"
        yield f"{self.name}_sum{_labelled(named)} {_number(numbers[-1])}"
        yield f"{self.name}_count{_labelled(named)} {_number(count)}"


class Gauge(Metric):
    """A current value, usually of the living processes and read by a registered function."""

    kind = "gauge"

    def __init__(self, name: str, description: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, description, labels)
        self._sources: list[Read] = []

    def read_from(self, source: Read) -> Read:
        self._sources.append(source)
        return source

    def read(self) -> list[tuple[Labels, Numbers]]:
        return [(labels, [value]) for source in self._sources for labels, value in source().items()]


METRICS: dict[str, Metric] = {}
recorders: "set[Recorder]" = set()  # running recorders of this process
_lock = threading.Lock()

REQUESTS = Counter("requests_total", "Requests answered, and sockets closed.", ("method", "route", "status"))
REQUEST_SECONDS = Histogram(
    "request_seconds",
    "Seconds from a request to the head of its response; streams continue after it.",
    ("route",),
)
SOCKETS = Gauge("sockets", "Open sockets of pages.")
CONNECTIONS_ENDED = Counter(
    "connections_ended_total",
    "Connections closed without a response from the application: evicted (silent, to free a slot), or "
    "by status.",
    ("reason",),
    known=("evicted", "400", "408", "431", "501", "503"),
)
RUNS_RUNNING = Gauge("runs_running", "Answers that are being written.")
RUNS = Counter("runs_total", "Answers that have ended, by their state.", ("state",))
FIRST_TOKEN_SECONDS = Histogram(
    "first_token_seconds",
    "Seconds from an accepted question to the first text of its answer.",
    bounds=(0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
TOKENS = Counter(
    "tokens_total", "Tokens of answers, as the model counted them.", ("kind",), ("prompt", "completion")
)
MODEL_ERRORS = Counter(
    "model_errors_total",
    "Answers that failed because of the model, by error code.",
    ("code",),
    known=("upstream_unavailable", "upstream_timeout", "upstream_protocol", "rate_limited"),
)
SEARCH_SECONDS = Histogram("search_seconds", "Seconds of a search in the database, by plan.", ("plan",))
FLUSH_SECONDS = Histogram("journal_flush_seconds", "Seconds for writing running answers to the journal.")
LEASES_EXPIRED = Counter("leases_expired_total", "Answers that were closed after their process had died.")
POOL = Gauge(
    "database_pool", "Connections of the pool: size, idle, and requests that are waiting for one.", ("state",)
)
BREAKERS_OPEN = Gauge(
    "breakers_open", "Processes that have paused requests to a failing server, by server.", ("server",)
)
DOCUMENTS_READ = Counter("documents_read_total", "Readings of documents that have ended.", ("outcome",))
PROCESSES = Gauge("processes", "Processes that are alive.", ("kind",))
PROCESS_CPU_SECONDS = Counter("process_cpu_seconds_total", "Processor seconds of processes.", ("kind",))
PROCESS_PEAK_BYTES = Gauge("process_peak_bytes", "Peak memory of the living processes.", ("kind",))
# Metrics that each request for `/metrics` queries from the database. The first two describe that query; the
# others are the same on all machines.
DATABASE_UP = Gauge("database_up", "Whether the database answered this page in time.")
DATABASE_LOOK_SECONDS = Gauge("database_look_seconds", "Seconds that the database took to answer.")
JOBS = Gauge("jobs", "Jobs of the workers: todo, doing, failed.", ("state",))
OLDEST_JOB_SECONDS = Gauge("oldest_job_seconds", "Age of the oldest job that has not been started.")
WEBHOOKS_DUE = Gauge("webhooks_due", "Due messages of webhooks whose endpoints respond.")
OLDEST_WEBHOOK_SECONDS = Gauge(
    "oldest_webhook_seconds", "Seconds since the oldest due message of a webhook became due."
)
LEASES = Gauge("leases", "Unfinished answers: with a valid lease, or with an expired one.", ("state",))


class Recorder:
    """Writes this process's metrics to a file in `folder`.

    `kind` is web or worker.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        self.path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name="metrics", daemon=True)

    def start(self) -> None:
        """Start writing, and merge the files of ended processes."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            merge_ended(self.folder)
        self.write()
        self._thread.start()
        recorders.add(self)

    def stop(self) -> None:
        """Write once more, marked as ended: the gauges in the file then no longer count."""
        recorders.discard(self)
        self._ended.set()
        self.write()

    def write(self) -> None:
        """Write the file atomically.

        With a full disk, the metrics become stale, but the process continues.
        """
        temporary = self.path.with_suffix(".new")
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps(self._state()))
            temporary.replace(self.path)

    def _state(self) -> dict[str, Any]:
        numbers = {name: metric.read() for name, metric in METRICS.items()}
        used = resource.getrusage(resource.RUSAGE_SELF)
        kind = (self.kind,)
        numbers[PROCESSES.name] = [(kind, [1.0])]
        numbers[PROCESS_CPU_SECONDS.name] = [(kind, [used.ru_utime + used.ru_stime])]
        numbers[PROCESS_PEAK_BYTES.name] = [(kind, [used.ru_maxrss * 1024.0])]
        return {"written": 0 if self._ended.is_set() else time.time(), "metrics": numbers}

    def _keep_writing(self) -> None:
        while not self._ended.wait(WRITE_SECONDS):
            self.write()


def merge_ended(folder: Path) -> None:
    """Merge the files of ended processes into one file of sums, and remove them.

    The file of sums lists the merged files, so that a file that could not be removed counts only once.
    """
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sums = _load(folder / f"{ENDED}.json") or {"metrics": {}, "files": []}
        ended = {path: state for path, state in _files(folder) if not _is_alive(path, state)}
        new = [state["metrics"] for path, state in ended.items() if path.name not in sums["files"]]
        if new:
            merged = {
                "written": 0,
                "metrics": total([sums["metrics"], *new], kinds=("counter", "histogram")),
                "files": [path.name for path in ended],
            }
            temporary = folder / f"{ENDED}.new"
            temporary.write_text(json.dumps(merged))
            temporary.replace(folder / f"{ENDED}.json")
        for path in ended:
            path.unlink(missing_ok=True)


def gathered(folder: Path) -> Snapshot:
    """The metrics of all processes that have written to this folder; gauges only of living ones."""
    sums = _load(folder / f"{ENDED}.json") or {"metrics": {}, "files": []}
    states = [(path, state) for path, state in _files(folder) if path.name not in sums["files"]]
    counted = total(
        [sums["metrics"], *(state["metrics"] for _, state in states)], kinds=("counter", "histogram")
    )
    alive = [state["metrics"] for path, state in states if _is_alive(path, state)]
    return {**counted, **total(alive, kinds=("gauge",))}


def total(snapshots: Iterable[Snapshot], kinds: Sequence[str]) -> dict[str, list[tuple[Labels, Numbers]]]:
    """The sums of the metrics of these `kinds`.

    Skips values from another version, in which the metric had a different number of buckets or labels.
    """
    sums: dict[str, dict[Labels, Numbers]] = {}
    for snapshot in snapshots:
        for name, values in snapshot.items():
            metric = METRICS.get(name)
            if metric is None or metric.kind not in kinds:
                continue
            size = metric.size
            of_name = sums.setdefault(name, {})
            for labels, numbers in values:
                if len(numbers) != size or len(labels) != len(metric.labels):
                    continue
                before = of_name.get(tuple(labels), [0.0] * size)
                of_name[tuple(labels)] = [one + other for one, other in zip(before, numbers, strict=True)]
    return {name: [*values.items()] for name, values in sums.items()}


def exposition(snapshot: Snapshot) -> str:
    """The text format of Prometheus; counters and histograms without labels default to 0."""
    lines = []
    for name, metric in sorted(METRICS.items()):
        values: list[tuple[Labels, Numbers]] = sorted((tuple(own), of) for own, of in snapshot.get(name, ()))
        if not values and not metric.labels and metric.kind != "gauge":
            values = [((), [0.0] * metric.size)]
        lines += [f"# HELP {name} {metric.description}", f"# TYPE {name} {metric.kind}"]
        for labels, numbers in values:
            lines += metric.lines(labels, numbers)
    return "\n".join(lines) + "\n"


def _files(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The readable files of processes, with their content."""
    return [(path, state) for path in sorted(folder.glob("*-*.json")) if (state := _load(path))]


def _load(path: Path) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return state


def _is_alive(path: Path, state: Mapping[str, Any]) -> bool:
    """Whether the process of a file exists and has written recently."""
    if time.time() - state["written"] > ALIVE_SECONDS:
        return False
    try:
        os.kill(int(path.name.partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _labelled(labels: Iterable[tuple[str, str]]) -> str:
    escaped = [
        '{}="{}"'.format(name, value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\""))
        for name, value in labels
    ]
    return "{" + ",".join(escaped) + "}" if escaped else ""


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
