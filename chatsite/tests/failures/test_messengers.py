"""Redis hangs, or PostgreSQL cannot NOTIFY: the journal, stops and ending processes do not wait for it."""

import shutil
import signal
import threading
import time
from contextlib import contextmanager

import psycopg
import pytest

from chatsite.server.embedded_postgres import connection_parameters
from chatsite.tests.failures.test_redis_faults import Redis
from chatsite.tests.faults import FaultSite, Upstream, answer_to, new_token, question_for
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.server import prepared, temporary_folder

pytestmark = pytest.mark.server

JOURNAL_SECONDS = 1.0  # between two writes: 0.2 s for the flush, 0.2 s for a notification, and a margin
STOP_SECONDS = 0.8  # for the reply to a stop; the answer ends soon after
END_SECONDS = 3.0  # end of a web process
HUNG_SECONDS = 4.0
HELD = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'holder' AND wait_event = 'SyncRep'"
HOLD = "CREATE TABLE IF NOT EXISTS held (); INSERT INTO held DEFAULT VALUES; SELECT pg_notify('test', 'held')"
LAST = "SELECT max(last) FROM chat_journalentry WHERE run_id = %s"


@pytest.fixture
def folder():
    path = temporary_folder()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def hung_redis(redis):
    redis.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        redis.process.send_signal(signal.SIGCONT)


@contextmanager
def blocked_notify(folder):
    """Hold the lock of NOTIFY by a session whose commit waits for a replica that does not exist.

    The site's commits do not wait for replicas (`site_settings`, from its start on); otherwise a commit that
    is under way when the setting changes would wait, too.
    """
    parameters = connection_parameters(folder, role="postgres", database="postgres")
    with psycopg.connect(**parameters, autocommit=True) as session:
        session.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        session.execute("SELECT pg_reload_conf()")
        holder = threading.Thread(target=notify_until_blocked, args=(parameters,), daemon=True)
        holder.start()
        deadline = time.monotonic() + HANG_SECONDS
        while not session.execute(HELD).fetchone():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        try:
            yield
        finally:
            session.execute("ALTER SYSTEM RESET synchronous_standby_names")
            session.execute("SELECT pg_reload_conf()")
            holder.join(10)


def notify_until_blocked(parameters):
    """The server applies the setting after a moment; return when a commit waits."""
    with psycopg.connect(**parameters, application_name="holder", autocommit=True) as session:
        session.execute("SET synchronous_commit = on")
        begun = time.monotonic()
        while time.monotonic() - begun < 3:
            begun = time.monotonic()
            session.execute(HOLD)
            time.sleep(0.02)


def longest_pause(site, run, seconds):
    """The longest time in which nothing of a running answer was written to the journal."""
    longest, seen, since = 0.0, None, time.monotonic()
    deadline = since + seconds
    with psycopg.connect(**site.parameters, autocommit=True) as session:
        while (now := time.monotonic()) < deadline:
            [last] = session.execute(LAST, [run]).fetchone()
            if last != seen:
                seen, since = last, now
            longest = max(longest, now - since)
            time.sleep(0.02)
    return longest


def check_hanging(site, hung):
    caller, written, stopped = site.caller(), new_token(), new_token()
    run = caller.begin(question_for(written, 150, 40))  # 6 s
    other = caller.begin(question_for(stopped, 500, 40))
    time.sleep(0.6)
    with hung:
        assert longest_pause(site, run, HUNG_SECONDS) < HUNG_SECONDS - 1
        begun = time.monotonic()
        assert caller.request("POST", f"/chat/runs/{other}/stop").status == 204
        assert time.monotonic() - begun < STOP_SECONDS + MARGIN_SECONDS
        while site.stored(stopped)[0][1] != "stopped":
            assert time.monotonic() - begun < STOP_SECONDS + JOURNAL_SECONDS + MARGIN_SECONDS
            time.sleep(0.02)
        text, end = caller.end(run)
        assert (text, end["state"]) == (answer_to(question_for(written, 150)), "complete")
    assert "Traceback" not in site.output


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed.")
def test_a_hanging_redis_delays_neither_the_journal_nor_a_stop_nor_the_end_of_a_process(folder):
    redis = Redis(folder)
    redis.start()
    try:
        with Upstream() as upstream:
            values = {"web_workers": 2, "workers": 0, "REDIS_URL": redis.url, "CHATSITE_GRACE_SECONDS": "1"}
            site = FaultSite(prepared(folder / "site", demo=False), upstream, **values)
            with site:
                check_hanging(site, hung_redis(redis))
                with hung_redis(redis):
                    process = site.web_processes()[0]
                    process.send_signal(signal.SIGTERM)
                    process.wait(END_SECONDS)
    finally:
        redis.kill()


def test_a_notify_that_blocks_delays_neither_the_journal_nor_a_stop(folder):
    with (
        Upstream() as upstream,
        FaultSite(prepared(folder, demo=False), upstream, web_workers=2, workers=0) as site,
    ):
        check_hanging(site, blocked_notify(folder))
