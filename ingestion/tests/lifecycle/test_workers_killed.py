"""Real worker processes: several share the work, and killing them does not change the final result.

CHATSITE_TEST_ROUNDS says how many are killed (3).
"""

import os
import random
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.db import connection
from django.test import TransactionTestCase
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker
from psycopg.conninfo import make_conninfo

from chatsite.accounts.models import User
from chatsite.tests.limits import LONG_SECONDS, MARGIN_SECONDS
from ingestion import (
    documents as pipeline,
)
from ingestion import tasks
from ingestion.models import Document, Passage, PreparedVector, Vector
from ingestion.queue import fair_queue
from ingestion.tests import building, hostile
from ingestion.tests.lifecycle.test_worker import forget_all_jobs
from ingestion.tests.media import EVERYONE, MediaMixin, stored_bytes

ROUNDS = int(os.environ.get("CHATSITE_TEST_ROUNDS", "3"))
SECONDS = 120 + 10 * ROUNDS  # until the jobs of killed workers are done
LEFT = {"status__in": ["todo", "doing"], "task_name": fair_queue.TASK}

# Starts other processes, and takes minutes.
pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]

LANES = 2  # lanes of a worker process, each registered separately


class Workers(MediaMixin, TransactionTestCase):
    def setUp(self):
        super().setUp()
        forget_all_jobs()
        self.addCleanup(forget_all_jobs)
        self.running = []
        self.addCleanup(self.kill_all)

    def start(self, *command):
        """A worker as `up` starts it, or a command of manage.py."""
        database = connection.settings_dict
        names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
        address = {name: database[key] for name, key in names.items() if database.get(key)}
        if "passfile" in database["OPTIONS"]:
            address["passfile"] = database["OPTIONS"]["passfile"]
        process = subprocess.Popen(
            [
                sys.executable,
                *(command or ("-m", "chatsite.server.worker", "--parent", str(os.getpid()))),
            ],
            cwd=settings.BASE_DIR,
            env=os.environ | {"DATABASE_URL": make_conninfo(**address), "CHATSITE_MEDIA_ROOT": self.media},
        )
        self.running.append(process)
        return process

    def kill_all(self):
        for process in self.running:
            process.kill()
            process.wait()
        self.running.clear()

    def wait_for(self, condition):
        deadline = time.monotonic() + SECONDS
        while not (found := condition()):
            self.assertLess(time.monotonic(), deadline, "It takes too long.")
            time.sleep(0.02)
        return found

    def doing(self):
        return ProcrastinateJob.objects.filter(status="doing", task_name=fair_queue.TASK)

    def finished(self):
        return not ProcrastinateJob.objects.filter(**LEFT).exists()


class SharingTests(Workers):
    def test_two_workers_share_the_documents_and_read_each_once(self):
        before = set(ProcrastinateWorker.objects.values_list("pk", flat=True))
        self.start()
        alive = Path(self.media, "alive")
        elsewhere = self.start("manage.py", "work", "--alive-file", str(alive))
        # Start both together: a single one would read a few documents before the other is ready.
        self.wait_for(lambda: ProcrastinateWorker.objects.exclude(pk__in=before).count() == 2 * LANES)
        documents = [self.add(f"{number}.md", f"Text {number}.", read=False) for number in range(24)]
        seen = set()

        def done():
            seen.update(self.doing().values_list("worker", flat=True))
            return self.finished()

        self.wait_for(done)
        states = Document.objects.filter(pk__in=[each.pk for each in documents])
        self.assertEqual(set(states.values_list("status", "version")), {("ready", 1)})
        self.assertEqual((Passage.objects.count(), len(seen - {None})), (24, 2))
        self.assertTrue(alive.exists())
        elsewhere.terminate()
        self.assertEqual(elsewhere.wait(20), 0)


class YieldingTests(Workers):
    def test_two_slow_files_do_not_block_another_owners(self):
        ann, bob = (User.objects.create(username=name) for name in ("ann", "bob"))
        bomb = hostile.slow_sheet()
        slow = [self.add(f"{number}.xlsx", bomb, owner=ann, read=False) for number in range(2)]
        for _ in slow:
            self.start()
        self.wait_for(lambda: self.doing().count() == 2)
        begun = time.monotonic()
        small = self.add("small.md", "# Small\n\nA few words.", owner=bob, read=False)
        self.wait_for(Document.objects.filter(pk=small.pk, status="ready").exists)
        # The file would be read for settings.READING_SECONDS, a minute.
        self.assertLess(time.monotonic() - begun, fair_queue.YIELD_SECONDS + 10 * MARGIN_SECONDS)
        states = Document.objects.filter(pk__in=[each.pk for each in slow]).order_by("pk")
        self.assertEqual(states[0].status, "reading")
        # Its reading starts again as soon as a worker is free.
        self.assertIn(states[1].status, ("waiting", "reading"))
        # A job ends a moment after its document is ready; the attempts of yielding jobs are reset in two
        # steps.
        jobs = ProcrastinateJob.objects.filter(**LEFT).order_by("pk")
        self.wait_for(lambda: list(jobs.values_list("attempts", flat=True)) == [0, 0])
        self.assertGreater(states[1].queue_position, small.queue_position)


class StoppedTests(Workers):
    def test_a_worker_that_stops_returns_its_document_without_counting_an_attempt(self):
        document = self.add(read=False)
        with connection.cursor() as cursor:  # the lock keeps the reading from ending
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [pipeline.READING_LOCK, document.pk])
            for _ in range(tasks.ATTEMPTS):
                worker = self.start()
                self.wait_for(self.doing().exists)
                worker.terminate()
                self.assertEqual(worker.wait(20), 0)
                jobs = ProcrastinateJob.objects.filter(**LEFT)
                self.assertEqual(list(jobs.values_list("status", "attempts")), [("todo", 0)])
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [pipeline.READING_LOCK, document.pk])
        self.start()
        self.wait_for(self.finished)
        document.refresh_from_db()
        self.assertEqual((document.status, document.version), ("ready", 1))


def without_versions(state):
    documents, *others = state
    return {place: (*each[:2], *each[3:]) for place, each in documents.items()}, *others


class KilledTests(Workers):
    def text(self, name, edition):
        lines = [f"# {name}, edition {edition}"]
        lines += [f"Paragraph {number} of {name} says {'word ' * 60}." for number in range(8)]
        return "\n\n".join(lines).encode()

    def add_all(self):
        return [
            self.add(f"{number}.md", self.text(number, 1), read=False) for number in range(6 + 2 * ROUNDS)
        ]

    def changes(self, documents):
        """Replace and delete documents, in a random order that is the same every time."""
        chance = random.Random(1)
        chosen = chance.sample(range(len(documents)), len(documents) // 2)
        for place, number in enumerate(chosen):
            if place % 3:
                yield lambda number=number: pipeline.replace_file(
                    documents[number], ContentFile(self.text(number, 2))
                )
            else:
                yield lambda number=number: pipeline.delete_document(documents[number])

    def state(self):
        """All stored data, without ids and other numbers that differ between runs."""
        documents = {}
        for document in Document.objects.all():
            texts = Passage.objects.filter(document=document).order_by("position")
            documents[document.folder, document.name] = (
                *(document.status, document.reason, document.version),
                stored_bytes(document),
                list(texts.values_list("content", flat=True)),
                Vector.objects.filter(document=document).count(),
            )
        kept = [path for path in Path(self.media).rglob("*") if path.is_file()]
        jobs = ProcrastinateJob.objects.filter(**LEFT).count()
        return documents, len(kept), jobs, PreparedVector.objects.count()

    def calm(self):
        documents = self.add_all()
        for change in self.changes(documents):
            change()
        for job in ProcrastinateJob.objects.filter(**LEFT).order_by("pk"):
            pipeline.read_document(**job.args)
        forget_all_jobs()
        state = self.state()
        for document in Document.objects.all():
            pipeline.delete_document(document)
        return state

    def kill_workers(self, rounds, change):
        """Kill a worker in each round, after `change(round)`; then let another one finish everything."""
        for round_number in range(rounds):
            worker = self.start()
            # After a third crash with one document, the document is given up by design.
            self.wait_for(lambda: self.doing().filter(attempts__lt=2).exists() or self.finished())
            change(round_number)
            time.sleep(random.uniform(0, 0.8))
            worker.kill()
            worker.wait()
            tasks.recover_stalled_jobs(grace_seconds=0)
        self.start()
        self.wait_for(self.finished)
        self.kill_all()
        # The nightly job removes the file of a worker that was killed between its work and the removal.
        with patch.object(tasks, "ORPHAN_AGE", timedelta()):
            tasks.remove_orphans(0)

    def test_killed_workers_reach_the_same_result_as_an_undisturbed_one(self):
        expected = self.calm()
        documents = self.add_all()
        changes = list(self.changes(documents))

        def some_changes(round_number):
            for change in changes[round_number::ROUNDS]:
                change()

        self.kill_workers(ROUNDS, some_changes)
        found = self.state()
        self.assertEqual(without_versions(found), without_versions(expected))
        # A worker that is killed between its work and the end of its job leaves a job that reads the old file
        # again if the document waits for a new one by then. That is one more version of the same text.
        for place, (_, _, version, *_) in found[0].items():
            self.assertIn(version - expected[0][place][2], range(ROUNDS + 1), place)

    def archive(self, edition):
        """An archive of 24 files, of which each edition changes, removes and adds some."""
        inner = building.package({f"{n}.md": self.text(f"inner {n}", edition) for n in range(4)})
        files = {f"part/{n}.md": self.text(n, edition if n % 3 else 1) for n in range(edition * 4, 20)}
        return building.package(files | {"inner.zip": inner, "empty.txt": "", "run.exe": b"MZ"})

    def put_archive(self, edition):
        upload = ContentFile(self.archives[edition])
        return pipeline.upsert(upload, "board.zip", owner=None, audience=EVERYONE, folder="hr")

    def read_all(self):
        while job := ProcrastinateJob.objects.filter(**LEFT).order_by("-priority", "pk").first():
            pipeline.read_document(**job.args)
            job_rows = ProcrastinateJob.objects.filter(pk=job.pk)
            job_rows._raw_delete(job_rows.db)

    def test_workers_killed_during_an_archive_leave_each_file_in_one_complete_version(self):
        self.archives = {edition: self.archive(edition) for edition in (1, 2)}
        for edition in (1, 2):
            self.put_archive(edition)
            self.read_all()
        expected = self.state()
        for document in Document.objects.filter(part_of=None):
            pipeline.delete_document(document)
        self.assertEqual(self.state()[1:], (0, 0, 0))
        self.put_archive(1)

        def second_edition(round_number):
            if round_number == ROUNDS:
                self.put_archive(2)

        self.kill_workers(2 * ROUNDS, second_edition)
        found = self.state()
        # Whether the first edition of a file was read before the second one arrived is random.
        without_versions = [
            {name: (*row[:2], *row[3:]) for name, row in state[0].items()} for state in (found, expected)
        ]
        self.assertEqual(*without_versions)
        self.assertEqual(found[1:], expected[1:])
