"""PostgreSQL restarted, stopped, full or refusing, and a full disk, under two busy web processes.

With CHATSITE_TEST_ROUNDS of 20 or more PostgreSQL stays away for 20 seconds.
"""

import json
import os
import threading
import time
from functools import partial

import psycopg
import pytest

from chatsite.tests.faults import PASSWORD, answer_to, at_once, new_token, question_for, upload
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS

pytestmark = pytest.mark.server

AWAY_SECONDS = 20 if int(os.environ.get("CHATSITE_TEST_ROUNDS", "1")) >= 20 else 3
BACK_SECONDS = 2  # time after which requests succeed again
FAIL = """
    CREATE SEQUENCE fault_number;
    CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('fault_number') <= {times} THEN RAISE EXCEPTION USING ERRCODE = '{code}'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fault BEFORE {event} FOR EACH ROW {when} EXECUTE FUNCTION fault();
"""
TAKE_AWAY = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chatsite'"
MEND = "DROP FUNCTION IF EXISTS fault CASCADE; DROP SEQUENCE IF EXISTS fault_number"


class ContinuousAsker:
    """Asks without a break, and sends each question again until it is accepted."""

    def __init__(self, caller):
        self.caller, self.tokens, self.refusals, self.going = caller, [], [], True
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self):
        while self.going:
            token = new_token("ask")
            while not self._taken(token):
                time.sleep(0.1)
            self.tokens.append(token)

    def _taken(self, token):
        try:
            connection, response = self.caller.ask(question_for(token, 5, 10), key=token, timeout=10)
        except OSError as error:
            self.refusals.append((time.monotonic(), error))
            return False
        if response.status != 200:
            self.refusals.append((time.monotonic(), response.status))
        connection.close()
        return response.status == 200

    def stop(self):
        self.going = False
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.tokens

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """A failed test must not go on asking the site of the next tests."""
        self.going = False


def assert_stored_once(fault_site, tokens, states=("complete",)):
    """Assert that every question was stored and answered once, and its answer ended in a given state."""
    for token in tokens:
        assert len(fault_site.stored(token)) == 1, "an acknowledged question is lost"
        assert fault_site.ended(token, 20)[0] in states, fault_site.ended(token)
        assert fault_site.upstream.calls(token) <= 1


def retry_all(*calls):
    """Send requests together until all are accepted twice in a row; return the time between the two.

    Each web process notices the return for itself, so one acceptance does not speak for the others.
    """
    deadline = time.monotonic() + BACK_SECONDS + 4 * MARGIN_SECONDS
    moment = None
    while True:
        refused = {status for status, _ in at_once(*calls)} - {200}
        if moment and not refused:
            return moment
        assert refused <= {503}
        assert time.monotonic() < deadline, "requests are still refused"
        moment = None if refused else time.monotonic()
        time.sleep(0.1)


def test_a_restart_of_postgresql_loses_nothing(fault_site):
    caller = fault_site.caller()
    # Waits until the faults of the test before are over.
    retry_all(partial(caller.whole, question_for(new_token(), 5, 0)))
    streams = [new_token() for _ in range(6)]
    with ContinuousAsker(caller) as asking:
        connections = [caller.accepted(question_for(token, 120, 20)) for token in streams]
        assert {response.status for _, response in connections} == {200}
        time.sleep(0.5)
        fault_site.cluster._control("restart", "-m", "fast")
        returned = time.monotonic()
        after = [new_token() for _ in range(6)]
        back = retry_all(*[partial(caller.whole, question_for(token, 5, 0), key=token) for token in after])
        while len(asking.tokens) <= 3:
            time.sleep(0.05)
        tokens = asking.stop()
    # Requests do not show that both web processes have noticed the return: one may have accepted them all.
    back = max(back, returned + BACK_SECONDS)
    assert [refusal for moment, refusal in asking.refusals if moment > back] == []
    assert {refusal for _, refusal in asking.refusals} <= {503}
    assert_stored_once(fault_site, [*streams, *tokens, *after])
    for token, (connection, response) in zip(streams, connections, strict=True):
        text = "".join(json.loads(line).get("delta", {}).get("content") or "" for line in response)
        connection.close()
        assert text == answer_to(question_for(token, 120)), "a reader missed something"


def test_while_postgresql_is_stopped_the_site_is_busy_and_afterwards_all_continues(fault_site):
    name = new_token("u")
    caller, session = fault_site.caller(name), fault_site.sign_in(name, PASSWORD)
    streams = [new_token() for _ in range(6)]
    runs = [caller.begin(question_for(token, 150, 20)) for token in streams]
    [(conversation,)] = fault_site.query("SELECT conversation_id FROM chat_run WHERE id = %s", runs[0])
    late = [new_token() for _ in range(3)]
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        fault_site.cluster._control("stop", "-m", "fast")
        stopped = time.monotonic()
        try:
            asked = [partial(caller.whole, question_for(token), key=token) for token in late]
            pages = [partial(session.get, path) for path in ("/", f"/c/{conversation}/", "/readyz")]
            answers = at_once(*asked, *pages, seconds=8)
            websocket.send(json.dumps({"type": "ask", "text": question_for(new_token()), "key": "k" * 10}))
            refused = json.loads(websocket.recv(timeout=HANG_SECONDS))
            time.sleep(max(0, stopped + AWAY_SECONDS - time.monotonic()))
        finally:
            fault_site.cluster._control("start", "-l", str(fault_site.cluster.log))
    assert [answer[0] for answer in answers[:3]] == [503] * 3
    assert {answer[1]["error"].partition(".")[0] for answer in answers[:3]} == {
        "The site is overloaded, or cannot reach its database"
    }
    assert [answer.status for answer in answers[3:]] == [503] * 3
    assert (refused["type"], refused["code"], refused["key"]) == ("refused", "busy", "k" * 10)
    retry_all(*asked)
    assert_stored_once(fault_site, [*streams, *late])
    for token, run in zip(streams, runs, strict=True):
        text, end = caller.end(run)
        assert (end["state"], text) == ("complete", answer_to(question_for(token, 150)))


def open_all_connections(parameters):
    """Open as many connections as the server allows."""
    held = []
    while True:
        try:
            held.append(psycopg.connect(**parameters, autocommit=True))
        except psycopg.OperationalError:
            return held


def test_without_free_connections_the_site_is_busy_in_time(fault_site):
    caller, token = fault_site.caller(), new_token()
    held = open_all_connections(fault_site.parameters)
    # The site's own connections are ended and taken before it can reopen them.
    while held[0].execute(TAKE_AWAY).fetchall():
        held += open_all_connections(fault_site.parameters)
    try:
        begun = time.monotonic()
        answers = at_once(*[partial(caller.whole, question_for(token), key=token)] * 12, seconds=15)
        assert time.monotonic() - begun < 10 + MARGIN_SECONDS
        assert {status for status, _ in answers} <= {503, 200}
        assert 503 in {status for status, _ in answers}
    finally:
        for connection in held:
            connection.close()
        returned = time.monotonic()
    retry_all(*[partial(caller.whole, question_for(token), key=token)] * 2)
    assert_stored_once(fault_site, [token])
    # For the next tests: the process that accepted none of these requests needs as long to notice.
    time.sleep(max(0.0, returned + BACK_SECONDS - time.monotonic()))


@pytest.fixture
def abort_writes(fault_site):
    """A function that makes PostgreSQL abort transactions that change a table."""

    def make(event, code, times, when=""):
        fault_site.query(FAIL.format(event=event, code=code, times=times, when=when))

    yield make
    fault_site.query(MEND)


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_rolled_back_question_is_stored_at_the_second_attempt(fault_site, abort_writes, code):
    caller, token = fault_site.caller(), new_token()
    abort_writes("INSERT ON chat_run", code, times=1)
    status, body = caller.whole(question_for(token, 5, 0))
    assert status == 200, body
    assert_stored_once(fault_site, [token])
    assert fault_site.upstream.calls(token) == 1


def test_a_question_rolled_back_repeatedly_is_refused_and_can_be_sent_again(fault_site, abort_writes):
    caller, token = fault_site.caller(), new_token()
    abort_writes("INSERT ON chat_run", "40001", times=2)
    connection, response = caller.ask(question_for(token, 5, 0), key=token)
    assert (response.status, response.headers["Retry-After"]) == (503, "2")
    connection.close()
    assert (fault_site.stored(token), fault_site.upstream.calls(token)) == ([], 0)
    assert caller.whole(question_for(token, 5, 0), key=token)[0] == 200
    assert_stored_once(fault_site, [token])


@pytest.mark.parametrize(
    "event",
    [
        "INSERT ON chat_journalentry",
        "UPDATE OF finished_at ON chat_run",
        "UPDATE OF thoughts ON history_message",
    ],
)
def test_writes_during_an_answer_may_be_rolled_back_several_times(fault_site, abort_writes, event):
    caller, token = fault_site.caller(), new_token()
    abort_writes(event, "40001", times=3)
    status, body = caller.whole(question_for(token, 30, 10))
    assert (status, body["message"]["content"]) == (200, answer_to(question_for(token, 30)))
    assert_stored_once(fault_site, [token])


def files(disk):
    return sorted(path.name for path in disk.rglob("*") if path.is_file())


def test_a_full_disk_refuses_an_upload_without_leftovers_and_the_site_continues(fault_site):
    if fault_site.small_disk is None:
        pytest.skip("No file system may be mounted here.")
    name = new_token("u")
    caller, session = fault_site.caller(name), fault_site.sign_in(name, PASSWORD)
    before = files(fault_site.small_disk)
    # There is no space for the file of the second one, and none even for the body of the third.
    assert upload(session, "first.txt", b"a b c " * 200_000)[0] == 201
    kept = files(fault_site.small_disk)
    assert len(kept) == len(before) + 1
    for size in (200_000, 900_000):
        status, reply = upload(session, "second.txt", b"d e f " * size)
        assert status == 507, reply
        assert "disk is full" in json.dumps(reply)
        assert files(fault_site.small_disk) == kept
    token = new_token()
    assert caller.whole(question_for(token, 5, 0))[0] == 200
    assert upload(session, "small.txt", b"a few words")[0] == 201
