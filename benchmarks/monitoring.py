"""Test the dashboard and the alerts of deploy/ with a real Prometheus and a running site.

    python benchmarks/monitoring.py [--seconds 60]

Needs `prometheus` (for instance Debian's), and takes two minutes. First, simulated people ask questions, open
pages, follow answers and upload files. Then each query of the dashboard is evaluated over this period, and
queries without a number are marked as EMPTY. Then a fault makes each alert fire: paused workers, a frozen
PostgreSQL, a failing model, a stopped site. The rules are those of deploy/alerts.yaml, but with a `for` of
2 s; while the workers are paused, a waiting document is made to look 31 minutes older. Ends with status 1 if
a query is empty, or if an alert fires before its fault or not at all.
"""

import argparse
import contextlib
import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from chat.tests.upstream_faults import Exchange, chunk, event, status  # noqa: E402
from chatsite.tests.client import Session  # noqa: E402
from chatsite.tests.db.test_frozen_database import frozen  # noqa: E402
from chatsite.tests.faults import PASSWORD, Caller, FaultSite, new_token, upload  # noqa: E402
from chatsite.tests.faults import Upstream as Model  # noqa: E402
from chatsite.tests.server import METRICS_TOKEN  # noqa: E402

SCRAPE_SECONDS = 2
WINDOW = "10s"  # the value that Grafana uses for $__rate_interval
FIRING_SECONDS = 90
QUESTION = "How many days of leave do I get?"
PAST = "UPDATE procrastinate_events SET at = at - interval '31 minutes' WHERE type = 'deferred'"


async def counted(exchange: Exchange) -> None:
    """The answer of the fake model, with its number of tokens."""
    await exchange.head()
    await exchange.text("Thirty ", "days ", "in ", "each ", "year.", pause=0.02)
    await exchange.send(chunk(reason="stop"))
    await exchange.send(event({"choices": [], "usage": {"prompt_tokens": 200, "completion_tokens": 5}}))
    await exchange.send(b"data: [DONE]\n\n")


class Upstream(Model):  # type: ignore[misc]
    """A model's server: while `fails` is set, every answer fails, otherwise one in thirty."""

    fails = False
    answers = 0

    async def _answer(self, exchange: Exchange) -> None:
        if exchange.request.streaming:
            self.answers += 1
            failing = self.fails or self.answers % 30 == 0
            await (status(500, {"error": {"message": "down"}}) if failing else counted)(exchange)
        else:
            await super()._answer(exchange)


class Prometheus:
    """A Prometheus server that scrapes one site."""

    def __init__(self, folder: Path, site: str) -> None:
        rules = yaml.safe_load((ROOT / "deploy" / "alerts.yaml").read_text())
        for rule in rules["groups"][0]["rules"]:
            rule["for"] = "2s"
        self.alerts = [rule["alert"] for rule in rules["groups"][0]["rules"]]
        (folder / "alerts.yaml").write_text(yaml.safe_dump(rules))
        job = {
            "job_name": "chatsite",
            "authorization": {"credentials": METRICS_TOKEN},
            "static_configs": [{"targets": [site]}],
        }
        interval = f"{SCRAPE_SECONDS}s"
        configuration = {
            "global": {
                "scrape_interval": interval,
                "evaluation_interval": interval,
                "scrape_timeout": interval,
            },
            "scrape_configs": [job],
            "rule_files": ["alerts.yaml"],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{address}/api/v1"
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder}",
             f"--web.listen-address={address}", "--log.level=error"],
        )  # fmt: skip

    def asked(self, path: str, **parameters: object) -> Any:
        with urllib.request.urlopen(f"{self.url}/{path}?{urllib.parse.urlencode(parameters)}") as answer:
            return json.load(answer)["data"]

    def numbers(self, query: str, start: float, end: float) -> list[float]:
        """All values of a query in this period, for all its series."""
        found = self.asked("query_range", query=query, start=start, end=end, step=SCRAPE_SECONDS)
        values = [float(value) for line in found["result"] for _, value in line["values"]]
        return [value for value in values if not math.isnan(value)]

    def firing(self) -> set[str]:
        found = self.asked("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}


@contextmanager
def going_on(*calls: Callable[[], object]) -> Iterator[None]:
    """Repeat each call, whatever its result, until the block ends."""
    ended = threading.Event()

    def repeat(call: Callable[[], object]) -> None:
        while not ended.wait(0.05):
            with contextlib.suppress(Exception):
                call()

    threads = [threading.Thread(target=repeat, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)


def load(caller: Caller, session: Session) -> list[Callable[[], object]]:
    return [
        lambda: caller.whole(QUESTION),
        lambda: caller.whole(QUESTION),
        lambda: caller.request("GET", "/chat-history"),
        lambda: session.get("/documents/"),
        lambda: (upload(session, f"{new_token()}.md", b"# Leave\n\nThirty days a year."), time.sleep(2)),
    ]


def empty_queries(prometheus: Prometheus, start: float, end: float) -> list[str]:
    """Print the results of the dashboard's queries; return the queries without a result."""
    dashboard = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())
    empty = []
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$job", "chatsite").replace("$__rate_interval", WINDOW)
            if values := prometheus.numbers(query, start, end):
                shown = f"{len(values)} numbers, {min(values):.4g} to {max(values):.4g}"
            else:
                shown = "EMPTY"
                empty.append(panel["title"])
            print(f"  {panel['title']}: {target.get('legendFormat') or query}: {shown}", flush=True)
    return empty


def missing_alert(prometheus: Prometheus, names: set[str], fault: str) -> list[str]:
    """Print the delay of each alert; return those that fire before the fault or too late."""
    begun = time.monotonic()
    early = names & prometheus.firing()
    waiting = names - early
    while waiting and time.monotonic() < begun + FIRING_SECONDS:
        for name in waiting & prometheus.firing():
            print(f"  {name}: fires {time.monotonic() - begun:.0f} s after: {fault}", flush=True)
            waiting.discard(name)
        time.sleep(0.5)
    for name in early | waiting:
        print(f"  {name}: {'FIRES BEFORE' if name in early else 'DOES NOT FIRE after'}: {fault}", flush=True)
    return sorted(early | waiting)


def faults(prometheus: Prometheus, site: FaultSite, caller: Caller, session: Session) -> list[str]:
    missing = []
    calls = load(caller, session)
    workers = site.children("chatsite.server.worker")
    for worker in workers:
        worker.send_signal(signal.SIGSTOP)
    upload(session, "late.md", b"# Late\n\nThis waits.")
    site.query(PAST)
    missing += missing_alert(prometheus, {"ChatsiteQueueStands"}, "no worker runs")
    for worker in workers:
        worker.send_signal(signal.SIGCONT)
    with frozen(site), going_on(*calls):
        names = {"ChatsiteDatabaseAbsent", "ChatsiteFails"}
        missing += missing_alert(prometheus, names, "PostgreSQL is frozen")
    site.upstream.fails = True
    with going_on(*calls[:2]):
        missing += missing_alert(prometheus, {"ChatsiteModelFails"}, "the model answers 500")
    site.stop()
    return missing + missing_alert(prometheus, {"ChatsiteUnreachable"}, "the site is stopped")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--seconds", type=int, default=60, help="how long the load lasts before the dashboard is read"
    )
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="chatsite-monitoring-"))
    folder.chmod(0o755)  # if root starts PostgreSQL, it runs as another user
    (folder / "site").mkdir(mode=0o711)
    (folder / "prometheus").mkdir()
    with Upstream() as upstream, contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        site = FaultSite(
            folder / "site", upstream, web_workers=2, CHATSITE_METRICS_TOKEN=METRICS_TOKEN,
            CHATSITE_LOOP_WATCHDOG_SECONDS="0", CHATSITE_USER_CONNECTIONS="100",
        )  # fmt: skip
        stack.callback(site.stop)
        site.start()
        prometheus = Prometheus(folder / "prometheus", re.sub(r"^http://", "", site.url))
        stack.callback(prometheus.process.wait)
        stack.callback(prometheus.process.terminate)
        caller = site.caller(new_token("u"))
        session = site.sign_in(caller.username, PASSWORD)
        upload(session, "leave.md", b"# Leave\n\nEmployees get thirty days of leave in each year.")
        time.sleep(5)
        conversation = caller.whole(QUESTION)[1]["session_state"]
        begun = time.time()
        with session.websocket(f"/ws/c/{conversation}/"), going_on(*load(caller, session)):
            time.sleep(options.seconds)
            print(f"Queries over {options.seconds} s of load:")
            empty = empty_queries(prometheus, begun, time.time())
        early = sorted(prometheus.firing())
        print(f"Alerts without a fault: {', '.join(early) or 'none'}")
        missing = faults(prometheus, site, caller, session)
    return int(bool(empty or early or missing))


if __name__ == "__main__":
    sys.exit(main())
