"""A Redis that is absent, starts, loses messages, is flushed and killed, between two busy web processes."""

import json
import shutil
import socket
import subprocess
import threading
import time

import pytest

from chat.runs.notifications import CHANNEL
from chatsite.tests.faults import FaultSite, Upstream, answer_to, new_token, question_for
from chatsite.tests.limits import HANG_SECONDS, LONG_SECONDS, MARGIN_SECONDS
from chatsite.tests.server import prepared, temporary_folder

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(LONG_SECONDS),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed."),
]

WORDS, PAUSE = 14, 60
LATE_SECONDS = 1.0 + 0.2  # a lost message, and a flush
FOLLOWERS = 6  # enough for both processes to have some


class Redis:
    """A Redis server on a free port, which the site knows before the server runs."""

    def __init__(self, folder):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder, self.process = folder, None

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self):
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self.process = subprocess.Popen([*command, "--dir", str(self.folder)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            try:
                return self.say("PING")
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def say(self, words):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(words.encode() + b"\r\n")
            return connection.recv(1000)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def redis():
    folder = temporary_folder()
    server = Redis(folder)
    yield server
    server.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def site(redis):
    """Two web processes with a Redis that starts later, and then loses a fifth of the messages."""
    folder = temporary_folder()
    values = {"REDIS_URL": redis.url, "DJANGO_SETTINGS_MODULE": "chatsite.tests.failures.lossy_settings"}
    try:
        with (
            Upstream() as upstream,
            FaultSite(prepared(folder, demo=False), upstream, web_workers=2, workers=0, **values) as running,
        ):
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def followed(caller, run, found):
    """Append the times at which each character of a run's text arrived, and its end."""
    connection, response = caller.events(run)
    moments, text, end = [], "", None
    for line in response:
        chunk = json.loads(line)
        text += chunk.get("text", "")
        moments += [time.monotonic()] * (len(text) - len(moments))
        end = chunk
    connection.close()
    found.append((text, moments, end))


def lateness(site, meanwhile=lambda: None):
    """The longest delay of a character, between the first follower who got it and any other one."""
    caller, token = site.caller(), new_token()
    run = caller.begin(question_for(token, WORDS, PAUSE))
    found = []
    threads = [threading.Thread(target=followed, args=(caller, run, found)) for _ in range(FOLLOWERS)]
    for thread in threads:
        thread.start()
    time.sleep(0.4)
    meanwhile()
    for thread in threads:
        thread.join(HANG_SECONDS)
    whole = answer_to(question_for(token, WORDS))
    assert [(text, end["state"]) for text, _, end in found] == [(whole, "complete")] * FOLLOWERS
    assert site.ended(token)[0] == "complete"
    assert site.upstream.calls(token) == 1
    columns = zip(*(moments for _, moments, _ in found), strict=True)
    return max(max(column) - min(column) for column in columns)


def stop_time(site):
    """How long a stop takes that reaches any of the processes."""
    caller, token = site.caller(), new_token()
    run = caller.begin(question_for(token, 500, 20))
    time.sleep(0.3)
    begun = time.monotonic()
    assert caller.request("POST", f"/chat/runs/{run}/stop").status == 204
    assert site.ended(token, 5)[0] == "stopped"
    return time.monotonic() - begun


def test_whatever_happens_to_redis_answers_arrive_at_most_a_second_late(site, redis):
    late = {"absent": lateness(site), "stopped while absent": stop_time(site)}
    redis.start()
    time.sleep(1.5)  # time for the processes to find it
    late["losing a fifth"] = lateness(site)
    late["stopped over it"] = stop_time(site)
    gone = []
    late["without its group"] = lateness(site, lambda: gone.append(redis.say(f"DEL asgi:group:{CHANNEL}")))
    assert gone == [b":1\r\n"]
    late["flushed"] = lateness(site, lambda: redis.say("FLUSHALL"))
    late["killed"] = lateness(site, redis.kill)
    late["stopped after it"] = stop_time(site)
    redis.start()
    time.sleep(1.5)
    late["back"] = lateness(site)
    allowed = LATE_SECONDS + MARGIN_SECONDS
    assert [name for name, seconds in late.items() if seconds > allowed] == [], late
    assert "Traceback" not in site.output
