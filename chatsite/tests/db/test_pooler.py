"""Behind the real PgBouncer: nobody sees another person's data, or else the site does not start."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from chatsite.server.embedded_postgres import connection_parameters
from chatsite.server.pooler import check_sessions
from chatsite.server.refusal import StartRefused
from chatsite.tests.db.pgbouncer import PgBouncer
from chatsite.tests.faults import (
    PASSWORD,
    FaultSite,
    Upstream,
    answer_to,
    at_once,
    cluster,
    new_token,
    question_for,
    upload,
)
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.server import BASE, Site, temporary_folder

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(LONG_SECONDS),
    pytest.mark.skipif(not Path("/usr/sbin/pgbouncer").exists(), reason="PgBouncer is not installed."),
]

START_SECONDS = 10  # within which a start is refused
DROPPING = "ignore_startup_parameters = options"
READING_SECONDS = 60
READ = "SELECT count(*) FROM ingestion_document WHERE status = 'ready' AND name LIKE 'reader%'"
PEOPLE, QUESTIONS = 8, 200
# These do not work with poolers: one counts statements that name the reader, two end server sessions.
OF_SESSIONS_ALONE = (
    "test_only_where_something_changed_and_in_no_log_of_queries",
    "test_after_a_session_was_ended_in_the_pool_a_moment_after_its_use",
    "test_without_a_pause_after_all_sessions_of_the_pool_were_ended",
)
LOCK_TESTS = ("chatsite/tests/db/test_row_level_security.py", "chatsite/tests/db/test_reader_of_a_session.py")


@pytest.fixture(scope="module")
def database():
    with cluster() as server:
        yield connection_parameters(server.data)


@pytest.fixture
def folder():
    folder = temporary_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def refusal(monkeypatch, **addresses):
    """The reason why a start with these addresses is refused."""
    for name, value in addresses.items():
        monkeypatch.setenv(name, value)
    begun = time.monotonic()
    with pytest.raises(StartRefused) as refused:
        check_sessions()
    assert time.monotonic() - begun < START_SECONDS
    return str(refused.value)


def test_a_start_behind_a_pooler_in_transaction_mode_ends_with_one_line_that_names_the_remedy(
    folder, database
):
    with PgBouncer(database) as pooler:
        status, output = Site(folder, demo=False, DATABASE_URL=pooler.url).outcome()
    assert (status, output.count("\n")) == (1, 1), output
    assert "transaction mode" in output
    assert "set DATABASE_DIRECT_URL" in output


@pytest.mark.parametrize("more", ["", DROPPING])
def test_sessions_that_change_with_each_transaction_are_refused(monkeypatch, database, more):
    with PgBouncer(database, more=more) as pooler:
        assert "transaction mode" in refusal(monkeypatch, DATABASE_URL=pooler.url)


@pytest.mark.parametrize("more", ["", DROPPING])
def test_sessions_without_their_time_limits_are_refused(monkeypatch, database, more):
    with PgBouncer(database, mode="session", more=more) as pooler:
        assert "drops the settings of a session" in refusal(monkeypatch, DATABASE_URL=pooler.url)


def test_a_pooler_without_transactions_is_refused(monkeypatch, database):
    with PgBouncer(database, mode="statement") as pooler:
        direct = make_conninfo(**database)
        output = refusal(monkeypatch, DATABASE_URL=pooler.url, DATABASE_DIRECT_URL=direct)
    assert "without transactions" in output


def test_a_direct_address_that_leads_through_a_pooler_is_refused(monkeypatch, database):
    with PgBouncer(database) as pooler:
        output = refusal(monkeypatch, DATABASE_URL=pooler.url, DATABASE_DIRECT_URL=pooler.url)
    assert output.startswith("DATABASE_DIRECT_URL leads to a connection pooler")


def test_a_direct_address_of_another_database_is_refused(monkeypatch, database):
    with PgBouncer(database) as pooler:
        elsewhere = make_conninfo(**database | {"dbname": "postgres"})
        output = refusal(monkeypatch, DATABASE_URL=pooler.url, DATABASE_DIRECT_URL=elsewhere)
    assert "must lead to the same database" in output


def test_a_pooler_without_a_free_session_in_time_is_refused(monkeypatch, database):
    with PgBouncer(database, mode="session", size=1) as pooler:
        assert "cannot be reached" in refusal(monkeypatch, DATABASE_URL=pooler.url)


def test_a_busy_pooler_is_detected_too(monkeypatch, database):
    """Other clients use the server's sessions in between, in random order."""
    with PgBouncer(database, more=DROPPING) as pooler, busy(pooler.url):
        for _ in range(20):  # which check finds it first depends on the other clients
            assert "set DATABASE_DIRECT_URL" in refusal(monkeypatch, DATABASE_URL=pooler.url)


def test_a_command_on_sessions_without_their_settings_ends_with_the_remedy(folder, database):
    with PgBouncer(database, more=DROPPING) as pooler:
        values = addresses(folder, pooler, database) | {"DATABASE_DIRECT_URL": ""}
        command = [sys.executable, "manage.py", "showmigrations"]
        done = subprocess.run(command, cwd=BASE, env=values, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "set DATABASE_DIRECT_URL" in done.stderr
    assert done.stderr.count("\n") == 1


def test_direct_addresses_are_accepted(monkeypatch, database):
    monkeypatch.setenv("DATABASE_URL", make_conninfo(**database))
    check_sessions()
    monkeypatch.setenv("DATABASE_DIRECT_URL", make_conninfo(**database))
    check_sessions()


@contextmanager
def busy(url):
    """Six other clients run transactions of random length."""
    going = threading.Event()
    going.set()

    def work(seed):
        chance = random.Random(seed)
        with psycopg.connect(url, prepare_threshold=None, autocommit=True) as client:
            while going.is_set():
                client.execute("SELECT pg_sleep(%s)", [chance.random() / 100])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        going.clear()
        for thread in threads:
            thread.join()


def addresses(folder, pooler, database):
    return os.environ | {
        "DATABASE_URL": pooler.url,
        "DATABASE_DIRECT_URL": make_conninfo(**database),
        "CHATSITE_DATA_DIR": str(folder),
    }


def test_none_of_1600_reads_of_eight_threads_sees_documents_of_another_reader(folder, database):
    with PgBouncer(database, size=3) as pooler:
        values = addresses(folder, pooler, database)
        subprocess.run([sys.executable, "manage.py", "prepare"], cwd=BASE, env=values, check=True)
        looks = [sys.executable, "-m", "chatsite.tests.db.pooled_looks"]
        done = subprocess.run(looks, cwd=BASE, env=values, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert (result["looks"], result["sessions"]) == (1600, 3)


def test_the_tests_of_row_level_security_hold_through_a_pooler(folder, database):
    with PgBouncer(database) as pooler:
        values = addresses(folder, pooler, database) | {
            "DJANGO_SETTINGS_MODULE": "chatsite.tests.db.pooled_settings"
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reuse-db"]
        done = subprocess.run(
            [*command, "-k", f"not ({' or '.join(OF_SESSIONS_ALONE)})", *LOCK_TESTS],
            cwd=BASE,
            env=values,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture(scope="module")
def pooled(database):
    """A site of two web processes behind a pooler of three sessions."""
    folder = temporary_folder()
    direct = make_conninfo(**database)
    try:
        with Upstream() as upstream, PgBouncer(database, size=3) as pooler:
            site = FaultSite(folder, upstream, database, web_workers=2, DATABASE_DIRECT_URL=direct)
            site.environment["DATABASE_URL"] = pooler.url
            with site:
                yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_200_questions_over_http_are_answered_from_the_askers_own_documents_alone(pooled):
    people = [new_token("reader") for _ in range(PEOPLE)]
    callers = [pooled.caller(name) for name in people]
    for name in people:
        text = f"# Harbour rules\n\nThe harbour master's word of the day is {name}zorn.\n"
        status, _ = upload(pooled.sign_in(name, PASSWORD), f"{name}.md", text.encode(), who="me")
        assert status in (200, 201), status
    deadline = time.monotonic() + READING_SECONDS
    while pooled.query(READ) != [(PEOPLE,)]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    asked, wrong, lock = iter(range(QUESTIONS)), [], threading.Lock()

    def ask():
        while True:
            with lock:
                number = next(asked, None)
            if number is None:
                return
            mine = number % PEOPLE
            token = new_token()
            question = f"{question_for(token, 5, 1)} What is the harbour master's word of the day?"
            status, body = callers[mine].whole(question)
            seen = set(re.findall(r"(reader\w+?)zorn", json.dumps(body)))
            if (
                status != 200
                or seen != {people[mine]}
                or answer_to(question_for(token, 5)) not in json.dumps(body)
            ):
                wrong.append((number, status, seen - {people[mine]}))

    at_once(*[ask] * 8, seconds=120)
    assert wrong == []
    tokens = pooled.query("SELECT count(*), count(DISTINCT id) FROM chat_run WHERE finished_at IS NOT NULL")
    assert tokens == [(QUESTIONS, QUESTIONS)]


def test_processes_notify_each_other_past_the_pooler(pooled):
    """Without notifications, the answer would be read only once a second."""
    caller, token = pooled.caller(), new_token()
    listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query = 'SELECT 1'"
    assert pooled.query(listeners)[0][0] >= 2
    run = caller.begin(question_for(token, 200, 20))
    answers = at_once(*[partial(caller.request, "POST", f"/chat/runs/{run}/stop") for _ in range(4)])
    assert {answer.status for answer in answers} == {204}
    assert pooled.ended(token, 2)[0] == "stopped"
