"""A blocked event loop is detected, and the log names what blocks it."""

import asyncio
import logging
import signal
import subprocess
import sys
import time

import pytest
from django.test import SimpleTestCase

from chatsite.server.watchdog import watched

SECONDS = 0.5
WATCHED = f"""
import asyncio, time
from chatsite.server.watchdog import watched

async def run():
    with watched({SECONDS}):
        print("watched", flush=True)
        while True:
            end = time.thread_time() + {SECONDS / 4}
            while time.thread_time() < end:
                pass
            await asyncio.sleep(0)

asyncio.run(run())
"""


def sleeping():
    time.sleep(SECONDS * 8)


def counting():
    end = time.thread_time() + SECONDS * 8
    while time.thread_time() < end:
        pass


@pytest.mark.slow
class WatchdogTests(SimpleTestCase):
    def watch(self, *steps):
        """Run these functions on the loop one after the other, and return what was logged."""

        async def run():
            with watched(SECONDS):
                for step in steps:
                    step()
                    await asyncio.sleep(SECONDS)

        with self.assertLogs("chatsite.server.watchdog", "WARNING") as logs:
            logging.getLogger("chatsite.server.watchdog").warning("So that there is one")
            asyncio.run(run())
        return logs.output[1:]

    def test_a_blocking_call_is_logged_once_with_its_name(self):
        for blocking in (sleeping, counting):
            (told,) = self.watch(blocking)
            self.assertIn("The event loop was blocked for", told)
            self.assertIn(f"in {blocking.__name__}", told)

    def test_each_block_is_logged(self):
        self.assertEqual(len(self.watch(sleeping, sleeping)), 2)

    def test_a_waiting_loop_is_not_blocked(self):
        self.assertEqual(self.watch(lambda: None, lambda: None), [])

    def test_waiting_for_a_processor_is_not_a_block(self):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
        try:
            self.assertEqual(self.watch(*[lambda: sum(range(200_000))] * 5), [])
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def test_a_process_that_was_suspended_is_not_blocked(self):
        with subprocess.Popen(
            [sys.executable, "-c", WATCHED], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                process.stdout.readline()
                for _ in range(3):
                    process.send_signal(signal.SIGSTOP)
                    time.sleep(SECONDS * 3)
                    process.send_signal(signal.SIGCONT)
                    time.sleep(SECONDS)
            finally:
                process.terminate()
            self.assertEqual(process.stderr.read(), b"")

    def test_the_watchdog_is_off_by_default(self):
        async def run():
            with watched(0):
                sleeping()

        with self.assertNoLogs("chatsite.server.watchdog"):
            asyncio.run(run())
