"""Measures what streaming an answer costs (CPU time, latency, memory), with a fast fake model.

    python benchmarks/bench_streaming.py [--only cost|streams|burst|sockets|signins|idle|soak …] [--minutes 2]
                                         [--tokens 300] [--ramp 20]

Starts the real site (`manage.py up`) with its own data directory, and a bare FastAPI relay and the client in
separate processes. Linux only.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from streaming import cost, idle, sign_ins, soak  # noqa: E402
from streaming.processes import load, server  # noqa: E402
from streaming.upstream import INTERVAL, TOKENS  # noqa: E402
from streaming.world import World, world  # noqa: E402

ANSWERS = 60  # answers in the comparison
SHORT_ANSWERS = 200  # two-token answers, started within 20 seconds, to measure the fixed cost
LEASES = "chat_lease"
STREAMS = 400
SOCKETS = 500
BURST = 75  # answers started per second, for four seconds
SIGN_INS = 12  # concurrent sign-ins
PARTS = ("idle", "cost", "streams", "burst", "sockets", "signins", "soak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--minutes", type=float, default=2.0, help="Minutes of mixed use.")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="Tokens of each answer.")
    parser.add_argument(
        "--ramp", type=float, default=20.0, help="Seconds within which all streams are started."
    )
    options = parser.parse_args()
    with server("upstream", str(options.tokens)) as (_, upstream), world(upstream, people=STREAMS) as site:
        if "idle" in options.only:
            report_idle(site)
        with server("relay", f"http://127.0.0.1:{upstream}/v1") as relay:
            if "cost" in options.only:
                report_cost(site, *relay, options.tokens)
        if "streams" in options.only:
            report_streams(site, upstream, options.tokens, STREAMS, options.ramp)
        if "burst" in options.only:
            report_streams(site, upstream, options.tokens, 4 * BURST, 4.0, target=1000)
        if "sockets" in options.only:
            each = asyncio.run(idle.sockets(site, SOCKETS))
            print(f"{SOCKETS} idle sockets: {each:.0f} KB each (target 150)")
        if "signins" in options.only:
            quiet, meanwhile = (1000 * p95(times) for times in sign_ins.pages(site, SIGN_INS))
            print(
                f"a page while {SIGN_INS} sign in: p95 {meanwhile:.0f} ms; idle: {quiet:.0f} ms", flush=True
            )
        if "soak" in options.only:
            for line in soak.soaked(site, options.minutes):
                print(line)


def report_idle(site: World) -> None:
    web, together = idle.memory(site)
    print(f"idle: web {web:.0f} MB (target 150); web, worker and PostgreSQL {together:.0f} MB (target 350)")


def report_cost(site: World, relay: int, port: int, tokens: int) -> None:
    """Compare the CPU time of the site with that of the relay, after warming up both.

    The fixed cost is the web process's CPU time for an answer of two tokens: admission, search, start, title,
    end, and its share of the work for all answers. The WAL is what PostgreSQL writes for an answer as a
    whole, including its sources and messages.
    """
    cost.measured(site.web, site.questions(4), 1)
    cost.measured(relay, site.questions(4) | {"port": port}, 1)
    updates, heap_only = site.updates(LEASES)
    wal = site.wal_bytes()
    ours, outcomes = cost.measured(site.web, site.questions(ANSWERS))
    wal = site.wal_bytes() - wal
    updates, heap_only = (
        now - before for now, before in zip(site.updates(LEASES), (updates, heap_only), strict=True)
    )
    theirs, _ = cost.measured(relay, site.questions(ANSWERS) | {"port": port})
    short, wrong = site.not_whole({outcome.run: outcome.number for outcome in outcomes}, tokens)
    site_token, relay_token = cost.per_token(ours, ANSWERS, tokens), cost.per_token(theirs, ANSWERS, tokens)
    print(f"{ANSWERS} answers of {tokens} tokens, {len(short)} cut short, {len(wrong)} stored wrongly")
    print(f"CPU time of the site: {site_token:.0f} µs a token; of the relay: {relay_token:.0f} µs")
    print(f"ratio {ours / theirs:.2f} (target 0.5)")
    print(f"leases: {heap_only} of {updates} updates are heap-only (target 90 %)")
    print(f"WAL: {wal / ANSWERS / tokens:.0f} bytes a token (target 230)", flush=True)
    short = {"tokens": 2}
    cost.measured(site.web, site.questions(20, **short), 1)
    cost.measured(relay, site.questions(20, **short) | {"port": port}, 1)
    ours, _ = cost.measured(site.web, site.questions(SHORT_ANSWERS, **short), 20)
    theirs, _ = cost.measured(relay, site.questions(SHORT_ANSWERS, **short) | {"port": port}, 20)
    fixed, plain = (1000 * spent / SHORT_ANSWERS for spent in (ours, theirs))
    print(f"fixed cost of an answer, web process alone: {fixed:.1f} ms of CPU time (target 10)")
    print(f"fixed cost of the relay: {plain:.1f} ms; load average: {os.getloadavg()[0]:.1f}", flush=True)
    with server("plain_view", json.dumps(site.parameters)) as (view, port):
        cost.measured(view, site.questions(20, **short) | {"port": port}, 1)
        least, _ = cost.measured(view, site.questions(SHORT_ANSWERS, **short) | {"port": port}, 20)
    print(
        f"a Django view with one INSERT and one SELECT: {1000 * least / SHORT_ANSWERS:.1f} ms;"
        f" an answer costs {ours / least:.1f} times as much",
        flush=True,
    )


def report_streams(
    site: World, upstream: int, tokens: int, streams: int, ramp: float, target: int = 250
) -> None:
    """Compare the site's streams with the ideal: the same client's direct requests to the model."""
    plain = site.questions(streams) | {"port": upstream, "path": "/v1/chat/completions"}
    plain["bodies"] = [{**body, "stream": True} for body in plain["bodies"]]
    ideal = load(**plain, spread=ramp, abort=0)
    outcomes = load(**site.questions(streams), spread=ramp, abort=0)
    # Refusals with Retry-After are expected; any other response without an answer is a fault.
    refused = [outcome for outcome in outcomes if outcome.status in (429, 503)]
    silent = [outcome for outcome in refused if not outcome.retry_after]
    failed = [
        outcome for outcome in outcomes if outcome not in refused and (outcome.error or outcome.first < 0)
    ]
    answered = [outcome for outcome in outcomes if outcome not in refused and outcome not in failed]
    short, wrong = site.not_whole(
        {outcome.run: outcome.number for outcome in outcomes if outcome.run}, tokens
    )
    late = p95([each.first for each in answered]) - p95([each.first for each in ideal])
    ratio = p95([each.total for each in answered]) / median(each.total for each in ideal)
    print(
        f"{streams} streams, started within {ramp:.0f} s: {len(failed)} failed,"
        f" {len(short)} cut short and stored as such, {len(wrong)} stored wrongly"
    )
    if refused:
        latest = max(outcome.total for outcome in refused)
        print(f"{len(refused)} refused, the last after {latest:.1f} s; {len(silent)} without Retry-After")
    print(f"first token p95 {late * 1000:.0f} ms above the model's (target {target})")
    print(f"total time p95 {ratio:.3f} of the ideal {tokens * INTERVAL:.0f} s (target 1.05)", flush=True)


def p95(values: list[float]) -> float:
    return quantiles(values, n=20)[18]


if __name__ == "__main__":
    main()
