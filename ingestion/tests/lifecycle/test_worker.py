"""The worker: documents, faults, and the jobs that a killed worker leaves."""

import asyncio
import os
import threading
import time
from unittest import mock

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.test import TransactionTestCase
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from ingestion import (
    documents as pipeline,
)
from ingestion import (
    tasks,
)
from ingestion.models import Document, Passage
from ingestion.storage import files
from ingestion.tests.media import MediaMixin


def work():
    """Run a worker on all jobs that are due, as the site does, until none is left."""

    async def run():
        with app.replace_connector(app.connector.get_worker_connector()) as worker_app:
            async with worker_app.open_async():
                await worker_app.run_worker_async(
                    wait=False, install_signal_handlers=False, listen_notify=False, queues=["ingestion"]
                )

    asyncio.run(run())


def forget_all_jobs():
    # Between tests, Django empties only the tables of its models, which these are not.
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs, procrastinate_periodic_defers CASCADE")


@pytest.mark.slow
class WorkerTests(MediaMixin, TransactionTestCase):
    def setUp(self):
        super().setUp()
        forget_all_jobs()
        self.addCleanup(forget_all_jobs)

    def status(self, document):
        return Document.objects.values_list("status", "version").get(pk=document.pk)

    def jobs(self):
        found = ProcrastinateJob.objects.filter(task_name="ingestion.read").order_by("pk")
        return list(found.values_list("status", flat=True))

    def make_all_due(self):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE procrastinate_jobs SET scheduled_at = NULL")

    def connections(self):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            )
            return cursor.fetchone()[0]

    def test_added_documents_are_read_and_connections_returned(self):
        documents = [self.add(f"{number}.md", f"Text {number}.", read=False) for number in range(3)]
        work()
        self.assertEqual([self.status(document) for document in documents], [("ready", 1)] * 3)
        self.assertEqual(self.jobs(), ["succeeded"] * 3)
        self.assertEqual(self.connections(), 0)

    def test_a_bad_file_does_not_keep_the_next_from_being_read(self):
        bad, good = self.add("a.pdf", b"", read=False), self.add(read=False)
        work()
        self.assertEqual((self.status(bad), self.status(good)), (("failed", 0), ("ready", 1)))

    def test_a_fault_of_the_environment_is_retried_later(self):
        document = self.add(read=False)
        with mock.patch.object(pipeline.reading, "read", side_effect=OSError("gone")):
            work()
        self.assertEqual((self.status(document), self.jobs()), (("waiting", 0), ["todo"]))
        self.make_all_due()
        work()
        self.assertEqual((self.status(document), self.jobs()), (("ready", 1), ["succeeded"]))

    def test_after_the_last_attempt_the_document_has_failed(self):
        document = self.add(read=False)
        gone = mock.patch.object(pipeline.reading, "read", side_effect=OSError("gone"))
        with gone, self.assertLogs("ingestion.tasks", "ERROR"):
            for _ in range(tasks.ATTEMPTS):
                self.assertEqual(self.status(document), ("waiting", 0))
                self.make_all_due()
                work()
        self.assertEqual(self.status(document), ("failed", 0))
        self.assertEqual(self.jobs(), ["succeeded"])

    def test_the_next_worker_does_the_jobs_of_a_killed_one(self):
        document = self.add(read=False)
        Document.objects.update(status="reading")
        with connection.cursor() as cursor:  # as if the worker's heartbeat had stopped
            cursor.execute("UPDATE procrastinate_jobs SET status = 'doing'")
        self.assertEqual(tasks.recover_stalled_jobs(), 1)
        self.assertEqual(tasks.recover_stalled_jobs(), 0)
        work()
        self.assertEqual((self.status(document), Passage.objects.count()), (("ready", 1), 1))

    def test_a_document_that_kills_every_worker_is_given_up(self):
        document = self.add(read=False)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE procrastinate_jobs SET status = 'doing', attempts = %s", [tasks.ATTEMPTS - 2]
            )
            self.assertEqual(tasks.recover_stalled_jobs(), 1)
            self.assertEqual((self.status(document), self.jobs()), (("waiting", 0), ["todo"]))
            cursor.execute("UPDATE procrastinate_jobs SET status = 'doing'")
        with self.assertLogs("ingestion.tasks", "ERROR"):
            self.assertEqual(tasks.recover_stalled_jobs(), 1)
        self.assertEqual((self.status(document), self.jobs()), (("failed", 0), []))
        self.assertEqual(tasks.recover_stalled_jobs(), 0)

    def test_a_job_resumes_as_soon_as_its_document_is_no_longer_being_read(self):
        document = self.add(read=False)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
            )  # with a fresh heartbeat
            cursor.execute(
                "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s", [cursor.fetchone()[0]]
            )
            self.assertEqual(tasks.recover_stalled_jobs(), 0)
            cursor.execute("UPDATE procrastinate_events SET at = now() - interval '6 seconds'")
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [pipeline.READING_LOCK, document.pk])
            self.assertEqual(tasks.recover_stalled_jobs(), 0)
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [pipeline.READING_LOCK, document.pk])
            self.assertEqual(tasks.recover_stalled_jobs(), 1)
        work()
        self.assertEqual(self.status(document), ("ready", 1))

    def test_two_workers_with_the_same_document_read_it_once(self):
        document = self.add(read=False)
        with mock.patch.object(pipeline.reading, "read", wraps=pipeline.reading.read) as read:
            pipeline.read_document(document.pk)
            work()
        self.assertEqual((read.call_count, self.status(document)), (1, ("ready", 1)))

    def test_a_worker_waits_if_its_document_is_being_read(self):
        document = self.add(read=False)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [pipeline.READING_LOCK, document.pk])
            worker = threading.Thread(target=work)
            worker.start()
            time.sleep(1.5)
            self.assertEqual((self.jobs(), self.status(document)), (["doing"], ("waiting", 0)))
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [pipeline.READING_LOCK, document.pk])
            worker.join()
        self.assertEqual(self.status(document), ("ready", 1))

    def test_orphaned_files_are_removed_after_a_day(self):
        document, waiting = self.add(), self.add(data="Old.")
        replacement = pipeline.replace_file(waiting, ContentFile(b"new"))
        orphan, young = (files.store(ContentFile(b"new"), 100).name for _ in range(2))
        names = [document.file.name, waiting.file.name, replacement["name"], orphan]
        lost = default_storage.save("documents/ab/lost.pages/1.png", ContentFile(b"page"))
        for name in [*names, lost]:
            os.utime(default_storage.path(name), (time.time() - 90_000,) * 2)
        tasks.remove_orphans(0)
        kept = [name for name in [*names, lost, young] if default_storage.exists(name)]
        self.assertEqual(kept, [document.file.name, waiting.file.name, replacement["name"], young])
