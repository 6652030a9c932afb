"""Processes killed at random during twenty streams: nothing acknowledged is lost, duplicated or invented.

CHATSITE_TEST_ROUNDS says how many kills (2).
"""

import os
import random
import shutil
import sys
import threading
import time
from collections import Counter

import psutil
import pytest

from chatsite.tests.faults import FaultSite, Upstream, answer_to, new_token, question_for
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.server import alive, prepared, temporary_folder

pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]

ROUNDS = int(os.environ.get("CHATSITE_TEST_ROUNDS", "2"))
STREAMS = 20
END_SECONDS = 40  # time after which no message is still streaming
TRY_SECONDS = 60  # time for which a caller repeats a question
MESSAGES = "SELECT role, content FROM history_message"
RUNNING = "SELECT count(*) FROM history_message WHERE state IN ('queued', 'streaming')"


@pytest.fixture(scope="module")
def killed():
    """A site of two web processes with its embedded PostgreSQL."""
    folder = temporary_folder()
    try:
        with Upstream() as upstream, FaultSite(prepared(folder, demo=False), upstream, web_workers=2) as site:
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def web(site):
    random.choice(site.web_processes()).kill()


def all_web(site):
    for process in site.web_processes():
        process.kill()


def worker(site):
    for process in site.children("chatsite.server.worker"):
        process.kill()


def postgresql(site):
    site.postgres().kill()


def everything(site):
    """Kill `up` and everything that it has started, as in a power failure without damage to the disk."""
    children, postgres = site.children(), site.postgres()
    site.kill()
    postgres.kill()
    for process in [*children, postgres, *postgres.children()]:
        if alive(process):
            process.kill()
    psutil.wait_procs([*children, postgres], 10)
    site.start()


KILLS = (web, postgresql, all_web, everything, worker)


class Asked:
    """One question, repeated until it is acknowledged, and the part of its answer that was read."""

    def __init__(self, caller):
        self.caller, self.token = caller, new_token("kill")
        self.question = question_for(self.token, random.randint(20, 120), 20)
        self.acknowledged = 0
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self):
        time.sleep(random.uniform(0, 1))
        deadline = time.monotonic() + TRY_SECONDS
        while time.monotonic() < deadline:
            try:
                connection, response = self.caller.ask(self.question, key=self.token, timeout=15)
                if response.status == 200:
                    self.acknowledged += 1
                    response.read()
                    return
                connection.close()
            except Exception:  # any error that a killed site causes
                if self.acknowledged:
                    return
            time.sleep(0.2)


def settled(site, begun):
    """Wait until no message is streaming; return the seconds since the kill."""
    while True:
        try:
            if site.query(RUNNING) == [(0,)]:
                return time.monotonic() - begun
        except Exception:
            assert time.monotonic() - begun < END_SECONDS + 20, "PostgreSQL did not come back"
        assert time.monotonic() - begun < END_SECONDS + 20, "messages are left streaming"
        time.sleep(0.2)


def judged(site, asked):
    """Check what was stored of a round's questions, and count the outcomes."""
    found = Counter()
    messages = Counter(content for role, content in site.query(MESSAGES) if role == "user")
    for one in asked:
        rows = site.stored(one.token)
        stored = messages.pop(one.question, 0)
        found["asked"] += 1
        found["acknowledged"] += bool(one.acknowledged)
        found["lost"] += bool(one.acknowledged) and not stored
        found["doubled"] += stored > 1 or len(rows) > 1 or site.upstream.calls(one.token) > 1
        for _, state, _, text, _ in rows:
            found[state] += 1
            whole = answer_to(one.question)
            found["no prefix"] += not whole.startswith(text) or (state == "complete" and text != whole)
    found["invented"] = sum(number for content, number in messages.items() if content not in site.known)
    site.known |= {one.question for one in asked}
    return found


def test_random_kills_lose_duplicate_and_invent_nothing(killed):
    total, longest = Counter(), {}
    killed.known = set()
    for number in range(ROUNDS):
        kill = KILLS[number % len(KILLS)] if number < len(KILLS) else random.choice(KILLS)
        asked = [Asked(killed.caller()) for _ in range(STREAMS)]
        time.sleep(random.uniform(0.5, 2.5))
        kill(killed)
        begun = time.monotonic()
        for one in asked:
            one.thread.join(TRY_SECONDS + 20)
            assert not one.thread.is_alive()
        seconds = settled(killed, begun)
        longest[kill.__name__] = max(seconds, longest.get(kill.__name__, 0))
        assert seconds < END_SECONDS, kill.__name__
        total += judged(killed, asked)
        killed.wait_until_ready(30)
    sys.stdout.write(f"{ROUNDS} kills: {dict(total)}; settled within {longest} s\n")
    assert total["acknowledged"] == total["asked"] == ROUNDS * STREAMS
    assert (total["lost"], total["doubled"], total["invented"], total["no prefix"]) == (0, 0, 0, 0)
