"""The thread that was used last takes the next call; sessions are reused in the same order."""

import subprocess
import sys
import threading
import time
from concurrent.futures import wait

import pytest
from django.db import connection

from chatsite.db.warm_threads import WarmThreads
from chatsite.dependency_internals import hand_out_last_returned
from chatsite.tests.limits import HANG_SECONDS


@pytest.fixture
def threads():
    executor = WarmThreads(2, "warm")
    yield executor
    executor.shutdown()


def name():
    return threading.current_thread().name


def idle(threads, number):
    """Wait until that many threads are idle, which is a moment after their results have arrived."""
    deadline = time.monotonic() + HANG_SECONDS
    while len(threads._idle) < number:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def occupied(threads, number):
    """Start that many calls; return them, and the event that ends them."""
    begun, released = threading.Barrier(number + 1), threading.Event()
    held = [threads.submit(lambda: (begun.wait(), released.wait(), name())[2]) for _ in range(number)]
    begun.wait(HANG_SECONDS)
    return held, released


def test_the_most_recent_thread_takes_the_next_call(threads):
    (first, second), released = occupied(threads, 2)
    released.set()
    wait([first, second])
    idle(threads, 2)
    last = threads._idle[-1].name
    for _ in range(5):
        assert threads.submit(name).result() == last
        idle(threads, 2)


def test_excess_calls_wait_in_order_and_can_be_cancelled(threads):
    held, released = occupied(threads, 2)
    done = []
    first, cancelled, last = (threads.submit(done.append, number) for number in range(3))
    assert threads.waiting == 3
    assert cancelled.cancel()
    released.set()
    wait([*held, first, last])
    assert sorted(done) == [0, 2]
    assert threads.waiting == 0
    assert len({each.result() for each in held}) == 2


def test_an_error_goes_to_the_caller_and_the_thread_stays(threads):
    with pytest.raises(ZeroDivisionError):
        threads.submit(divmod, 1, 0).result()
    idle(threads, 1)
    assert threads.submit(divmod, 5, 2).result() == (2, 1)


def test_accepted_calls_end_before_the_threads_do(threads):
    held, released = occupied(threads, 2)
    waiting = threads.submit(name)
    threading.Timer(0.05, released.set).start()
    threads.shutdown()
    assert all(each.done() for each in [*held, waiting])
    with pytest.raises(RuntimeError):
        threads.submit(name)


def test_an_ending_process_finishes_its_calls_and_does_not_wait_for_idle_threads():
    code = (
        "import time; from chatsite.db.warm_threads import WarmThreads; threads = WarmThreads(2, 'warm')\n"
        "threads.submit(print, 'first').result()\n"
        "threads.submit(lambda: (time.sleep(0.2), print('last', flush=True)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_SECONDS, check=True
    )
    assert ended.stdout.split() == ["first", "last"]


@pytest.mark.django_db(transaction=True)
def test_the_pool_hands_out_the_session_that_was_returned_last():
    pool = connection.pool
    if pool is None:
        pytest.skip("no pool")
    hand_out_last_returned(pool)
    older, newer = pool.getconn(), pool.getconn()
    pool.putconn(older)
    pool.putconn(newer)
    again = pool.getconn()
    pool.putconn(again)
    assert again is newer
