"""All processes of PostgreSQL are frozen, as on a frozen machine: nobody waits until this ends."""

import signal
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial

import psutil
import psycopg
import pytest
from websockets.exceptions import InvalidStatus

from chatsite.tests.db.test_store_faults import (
    ContinuousAsker,
    assert_stored_once,
    retry_all,
)
from chatsite.tests.faults import PASSWORD, answer_to, at_once, new_token, question_for
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS

pytestmark = pytest.mark.server

FROZEN_SECONDS = 5
# The tests wait for responses while PostgreSQL is frozen or a table is locked; later ones would be a fault.
REFUSED_SECONDS = 3 + 2 * MARGIN_SECONDS
BACK_SECONDS = 2 + 2 * MARGIN_SECONDS  # time after which requests succeed again


@contextmanager
def frozen(site):
    """Freeze all processes of the server within the block; it cannot start others meanwhile."""
    own = getattr(site, "cluster", None)  # None: the server that the site has started
    first = psutil.Process(own._process_id()) if own else site.postgres()
    first.send_signal(signal.SIGSTOP)  # first, so that it cannot start another child
    stopped = [first]
    try:
        for process in first.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
                stopped.append(process)
        yield
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


def timed(call):
    begun = time.monotonic()
    result = call()
    return time.monotonic() - begun, result


def test_while_postgresql_is_frozen_requests_are_refused_in_time_and_afterwards_all_continues(fault_site):
    name = new_token("u")
    caller, session = fault_site.caller(name), fault_site.sign_in(name, PASSWORD)
    streams = [new_token() for _ in range(6)]
    with ContinuousAsker(caller) as asking:
        runs = [caller.begin(question_for(token, 350, 20)) for token in streams]  # 7 s
        late = [new_token() for _ in range(8)]
        time.sleep(0.5)
        with frozen(fault_site):
            stopped = time.monotonic()
            asked = [
                partial(timed, partial(caller.whole, question_for(token, 5, 0), key=token)) for token in late
            ]
            pages = [partial(timed, partial(session.get, path)) for path in ("/", "/documents/")]
            answers = at_once(*asked, *pages)
            ready = [timed(partial(session.get, "/readyz")) for _ in range(3)]
            time.sleep(max(0, stopped + FROZEN_SECONDS - time.monotonic()))
        assert max(seconds for seconds, _ in answers) < REFUSED_SECONDS
        assert {status for _, (status, _) in answers[: len(late)]} == {503}
        assert {response.status for _, response in answers[len(late) :]} == {503}
        assert {response.headers["Retry-After"] for _, response in answers[len(late) :]} == {"2"}
        assert {response.status for _, response in ready} == {503}
        assert max(seconds for seconds, _ in ready) < 1 + 2 * MARGIN_SECONDS
        back = retry_all(*[partial(caller.whole, question_for(token, 5, 0), key=token) for token in late])
        tokens = asking.stop()
    assert [refusal for moment, refusal in asking.refusals if moment > back] == []
    assert {refusal for _, refusal in asking.refusals} <= {503}
    assert_stored_once(fault_site, [*streams, *late])
    assert_stored_once(fault_site, tokens, ("complete", "interrupted"))
    # A commit may be under way at that moment: its question is refused, but stored, and nobody answers it.
    assert [fault_site.ended(token)[0] for token in tokens].count("interrupted") <= 1
    for token, run in zip(streams, runs, strict=True):
        text, end = caller.end(run)
        assert (end["state"], text) == ("complete", answer_to(question_for(token, 350)))


@contextmanager
def blocked(site, table):
    """Lock a table exclusively within the block."""
    with psycopg.connect(**site.parameters) as session:
        session.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


BLOCKED = {  # requests that need the table
    "chat_usage": [("POST", "/chat"), ("POST", "/chat/stream")],
    "history_conversation": [("GET", "/"), ("GET", "/chat-history"), ("POST", "/chat")],
    "accounts_user": [("GET", "/"), ("GET", "/documents/"), ("POST", "/chat"), ("GET", "/chat-history")],
    "django_session": [("GET", "/"), ("GET", "/documents/")],
    "ingestion_document": [("GET", "/documents/"), ("POST", "/chat")],
}


@pytest.mark.parametrize("table", BLOCKED)
def test_no_request_waits_longer_than_three_seconds_for_a_blocked_table(fault_site, table):
    name = new_token("u")
    caller, session = fault_site.caller(name), fault_site.sign_in(name, PASSWORD)

    def ask(method, path):
        if method == "POST":
            connection, response = caller.ask(question_for(new_token(), 5, 0), path=path)
            status = response.status, response.headers["Retry-After"]
            connection.close()
            return status
        asker = caller.request if path == "/chat-history" else session.request
        answer = asker("GET", path)
        return answer.status, answer.headers["Retry-After"]

    calls = [partial(timed, partial(ask, *request)) for request in BLOCKED[table] for _ in range(6)]
    with blocked(fault_site, table):
        answers = at_once(*calls)
    assert {answer for _, answer in answers} == {(503, "2")}
    assert max(seconds for seconds, _ in answers) < REFUSED_SECONDS
    deadline = time.monotonic() + BACK_SECONDS
    while {status for status, _ in at_once(*[partial(ask, *request) for request in BLOCKED[table]])} != {200}:
        assert time.monotonic() < deadline


def test_a_table_that_one_page_needs_does_not_stop_the_others(fault_site):
    name = new_token("u")
    caller, session = fault_site.caller(name), fault_site.sign_in(name, PASSWORD)
    running, asking = new_token(), [new_token() for _ in range(40)]
    run = caller.begin(question_for(running, 100, 20))
    # Somebody else: the stuck requests of one person may delay that person's other requests.
    other = new_token("u")
    other_caller, other_session = fault_site.caller(other), fault_site.sign_in(other, PASSWORD)
    others = []
    at_once(*[partial(session.get, "/")] * 40)  # fills the pools, which open connections one by one
    with blocked(fault_site, "chat_usage"):
        stuck = [partial(caller.whole, question_for(token, 5, 0)) for token in asking]
        stuck += [partial(session.get, "/")] * 40
        crowd = threading.Thread(target=at_once, args=stuck, daemon=True)
        crowd.start()
        time.sleep(0.3)
        for _ in range(5):
            pages = [
                partial(other_session.get, "/documents/"),
                partial(other_caller.request, "GET", "/chat-history"),
            ]
            others += at_once(*[partial(timed, page) for page in pages * 2])
        crowd.join(20)
    assert {response.status for _, response in others} == {200}, [
        r.body[:300] for _, r in others if r.status != 200
    ]
    assert max(seconds for seconds, _ in others) < REFUSED_SECONDS
    text, end = caller.end(run)
    assert (end["state"], text) == ("complete", answer_to(question_for(running, 100)))


def test_a_lock_timeout_is_logged_in_one_line(fault_site):
    caller = fault_site.caller()
    before, said = fault_site.lines("Traceback"), fault_site.lines("lock timeout")
    with blocked(fault_site, "chat_usage"):
        at_once(*[partial(caller.whole, question_for(new_token(), 5, 0))] * 10)
    assert fault_site.lines("Traceback") == before
    assert fault_site.lines("lock timeout") - said <= 2  # one of each process


def test_a_question_that_already_holds_a_connection_is_given_up_in_time(fault_site):
    """The question waits for a lock when the server is frozen, so it is in the middle of a statement."""
    caller, token = fault_site.caller(), new_token()
    result = {}

    def ask():
        result["answer"] = timed(partial(caller.whole, question_for(token, 5, 0), key=token))

    with psycopg.connect(**fault_site.parameters) as session:
        session.execute("LOCK TABLE chat_usage IN ACCESS EXCLUSIVE MODE")
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        time.sleep(0.5)
        with frozen(fault_site):
            thread.join(HANG_SECONDS)
    seconds, (status, _) = result["answer"]
    assert status == 503
    assert seconds < REFUSED_SECONDS
    retry_all(partial(caller.whole, question_for(token, 5, 0), key=token))
    assert_stored_once(fault_site, [token])


def test_while_postgresql_is_frozen_new_pages_are_refused_in_time_and_admitted_afterwards(fault_site):
    name = new_token("u")
    fault_site.caller(name)
    session = fault_site.sign_in(name, PASSWORD)
    path = f"/ws/c/{session.post_json('/chat-history', {}).json()['id']}/"

    def come():
        with pytest.raises(InvalidStatus) as refused:
            session.websocket(path)
        return refused.value.response.status_code, refused.value.response.headers["Retry-After"]

    with frozen(fault_site):
        answers = at_once(*[partial(timed, come)] * 30)
    assert {refusal for _, refusal in answers} == {(503, "2")}
    assert max(seconds for seconds, _ in answers) < REFUSED_SECONDS
    deadline = time.monotonic() + BACK_SECONDS
    while True:
        try:
            with session.websocket(path):
                break
        except InvalidStatus:
            assert time.monotonic() < deadline
            time.sleep(0.1)
