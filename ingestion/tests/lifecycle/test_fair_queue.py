"""Whose document is read next: nobody waits for all documents that another person has added."""

import contextlib
from datetime import timedelta
from unittest import mock

import pytest
from django.db import OperationalError, connection, transaction
from django.test import TestCase
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.testing import InMemoryConnector

from chatsite.accounts.models import User
from ingestion import (
    documents as pipeline,
)
from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.models import Document
from ingestion.parsing.process import Interrupted
from ingestion.queue import fair_queue

LONG_QUEUE = 1_000


class Queue(TestCase):
    def setUp(self):
        self.ann, self.bob = (User.objects.create(username=name) for name in ("ann", "bob"))
        self.readers = access_list_for(Audience(everyone=True), None)
        with connection.cursor() as cursor:
            # Jobs of earlier tests: a flush removes their documents, but does not know the queue.
            cursor.execute("DELETE FROM procrastinate_jobs")
            cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
            self.worker = cursor.fetchone()[0]

    def add(self, owner, name=""):
        document = Document(owner=owner, access_list=self.readers, name=name, media_type="", size=1)
        document.queue_position = fair_queue.next_position(document)
        document.save()
        fair_queue.enqueue(document)
        return document

    def test_a_document_is_queued_within_its_transaction(self):
        with app.replace_connector(InMemoryConnector()) as worker:
            with contextlib.suppress(InterruptedError), transaction.atomic():
                self.add(self.ann)
                self.assertEqual(ProcrastinateJob.objects.count(), 1)
                raise InterruptedError
            self.assertEqual(ProcrastinateJob.objects.count(), 0)
            self.assertEqual(worker.connector.jobs, {})

    def test_a_document_that_waits_without_a_job_is_queued_again_once(self):
        lost, waiting = self.add(self.ann), self.add(self.bob)
        ProcrastinateJob.objects.filter(lock=fair_queue.lock_name(lost.pk)).delete()
        self.assertEqual(fair_queue.queue_lost(), 0)  # the document may just have been added
        Document.objects.update(changed_at=timezone.now() - timedelta(minutes=2))
        self.assertEqual(fair_queue.queue_lost(), 1)
        self.assertEqual(fair_queue.queue_lost(), 0)
        jobs = ProcrastinateJob.objects.values_list("args__document_id", flat=True)
        self.assertCountEqual(jobs, [lost.pk, waiting.pk])

    def add_many(self, owner, number):
        """Add documents as that many calls of `add` would."""
        documents = Document.objects.bulk_create(
            Document(owner=owner, access_list=self.readers, media_type="", size=1, queue_position=turn)
            for turn in range(1, number + 1)
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args)"
                " VALUES (%s, %s, %s, %s, jsonb_build_object('document_id', %s::bigint))",
                [
                    [
                        fair_queue.QUEUE,
                        fair_queue.TASK,
                        -each.queue_position,
                        pipeline.lock_name(each.pk),
                        each.pk,
                    ]
                    for each in documents
                ],
            )

    def take(self, number=1):
        """Take a job for each of that many workers; yield the owners of the documents."""
        with connection.cursor() as cursor:
            for _ in range(number):
                cursor.execute(
                    "SELECT args ->> 'document_id' FROM procrastinate_fetch_job_v2(NULL, %s)", [self.worker]
                )
                yield Document.objects.get(pk=cursor.fetchone()[0]).owner

    def finish_all(self):
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs WHERE status = 'doing'")


@pytest.mark.slow
class TurnTests(Queue):
    def test_one_document_does_not_wait_for_another_owners_thousand(self):
        self.add_many(self.ann, LONG_QUEUE)
        self.assertEqual(list(self.take(2)), [self.ann, self.ann])
        self.add(self.bob)
        self.assertEqual(list(self.take(2)), [self.ann, self.bob])

    def test_two_owners_with_many_documents_alternate_even_if_one_began_earlier(self):
        for _ in range(20):
            self.add(self.ann)
        self.assertEqual(list(self.take(5)), [self.ann] * 5)
        self.finish_all()
        for _ in range(5):
            self.add(self.bob)
        self.assertEqual(list(self.take(8)), [self.ann, self.bob] * 4)

    def test_a_stream_of_single_documents_does_not_starve_a_long_queue(self):
        for _ in range(20):
            self.add(self.ann)
        served = []
        for _ in range(10):
            self.add(self.bob)
            served += self.take(2)
            self.finish_all()
        self.assertEqual((served.count(self.ann), served.count(self.bob)), (10, 10))

    def test_documents_without_an_owner_count_as_those_of_one_owner(self):
        for _ in range(10):
            self.add(None)
        self.add(self.bob)
        self.assertEqual(list(self.take(3)), [None, self.bob, None])

    def test_positions_restart_when_the_queue_is_empty(self):
        for _ in range(3):
            self.add(self.ann)
        list(self.take(3))
        Document.objects.update(status="ready")
        self.finish_all()
        self.assertEqual(self.add(self.ann).queue_position, 1)

    def test_jobs_of_one_document_stay_in_order(self):
        document = self.add(self.ann)
        before = document.queue_position
        with self.captureOnCommitCallbacks():
            pipeline.retry(document)
        self.assertGreater(document.queue_position, before)
        jobs = ProcrastinateJob.objects.order_by("-priority").values_list("pk", flat=True)
        self.assertEqual(list(jobs), sorted(jobs))

    def test_the_number_of_documents_ahead_is_counted_up_to_a_limit(self):
        documents = [self.add(self.ann) for _ in range(fair_queue.MAX_COUNTED + 3)]
        wanted = [documents[0].queue_position, documents[4].queue_position, documents[-1].queue_position]
        self.assertEqual(
            list(fair_queue.count_waiting_before(wanted).values()), [0, 4, fair_queue.MAX_COUNTED]
        )
        self.assertEqual(fair_queue.count_waiting_before([]), {})


class YieldTests(Queue):
    """Which of the documents that are being read yields, and to whom."""

    def age(self, seconds=2 * fair_queue.YIELD_SECONDS):
        """Move all events so far that many seconds into the past."""
        with connection.cursor() as cursor:
            cursor.execute("UPDATE procrastinate_events SET at = at - make_interval(secs => %s)", [seconds])

    def yielding(self):
        """The positions, among the running jobs, of those that have to yield."""
        doing = ProcrastinateJob.objects.filter(status="doing").order_by("pk").values_list("pk", flat=True)
        parameters = {
            "task": fair_queue.TASK,
            "seconds": fair_queue.YIELD_SECONDS,
            "inspected": fair_queue.MAX_INSPECTED,
        }
        with connection.cursor() as cursor:
            found = []
            for place, job in enumerate(doing):
                cursor.execute(fair_queue.MUST_YIELD, parameters | {"job": job})
                if cursor.fetchone()[0]:
                    found.append(place)
        return found

    def hold_workers(self, *owners):
        for owner in owners:
            self.add(owner)
        list(self.take(len(owners)))

    def test_the_newest_of_an_owners_slow_documents_yields_to_a_waiting_owner(self):
        self.hold_workers(self.ann, self.ann, self.ann)
        self.add_many(self.ann, fair_queue.MAX_INSPECTED)
        self.add(self.bob)
        self.age()
        self.assertEqual(self.yielding(), [2])

    def test_two_people_who_hold_all_workers_yield_to_a_third(self):
        self.hold_workers(self.ann, self.bob)
        self.add(None)
        self.age()
        self.assertEqual(self.yielding(), [1])

    def test_nothing_yields_to_the_same_owners_or_to_delayed_retries(self):
        self.hold_workers(self.ann, self.bob)
        self.add(self.ann)
        later = self.add(None)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 hour' WHERE lock = %s",
                [pipeline.lock_name(later.pk)],
            )
        self.age()
        self.assertEqual(self.yielding(), [])

    def test_nothing_yields_if_a_worker_may_soon_be_free(self):
        self.hold_workers(self.ann)
        self.age()
        self.hold_workers(self.ann)
        self.add(self.bob)
        self.age(fair_queue.YIELD_SECONDS / 2)
        self.assertEqual(self.yielding(), [])

    def test_a_document_first_seen_just_now_does_not_yield(self):
        self.hold_workers(self.ann, self.ann)
        self.age()
        self.add(self.bob)
        self.assertEqual(self.yielding(), [])

    def test_the_only_document_being_read_never_yields(self):
        self.hold_workers(self.ann)
        self.add(self.bob)
        self.age()
        self.assertEqual(self.yielding(), [])

    def test_a_deleted_document_yields_even_if_nobody_waits(self):
        self.hold_workers(self.ann, self.bob)
        self.assertEqual(self.yielding(), [])
        pipeline.delete_document(Document.objects.get(owner=self.ann))
        self.assertEqual(self.yielding(), [0])

    def test_a_document_that_yielded_waits_behind_those_that_it_yielded_to(self):
        slow = self.add(self.ann)
        list(self.take())
        for _ in range(3):
            self.add(self.bob)
        interrupted = mock.patch.object(pipeline.reading, "read", side_effect=Interrupted)
        with interrupted, self.assertRaises(pipeline.Yielded) as yielded:
            pipeline.read_document(slow.pk)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE procrastinate_jobs SET status = 'todo', priority = %s WHERE lock = %s",
                [yielded.exception.priority, pipeline.lock_name(slow.pk)],
            )
        slow.refresh_from_db()
        self.assertEqual((slow.status, -slow.queue_position), ("waiting", yielded.exception.priority))
        self.assertEqual(list(self.take(4)), [self.bob, self.bob, self.bob, self.ann])

    def test_a_file_that_yields_stays_before_later_files_of_its_document(self):
        document = self.add(self.ann)
        list(self.take())
        self.finish_all()
        files = [{"name": name, "size": 1, "sha256": name} for name in ("second", "third", "fourth")]
        for file in files[:2]:
            fair_queue.requeue(document, file)
        for _ in range(9):
            self.add(self.bob)

        shares = fair_queue.Shares()
        shares.add(self.ann.pk, 60.0)
        shares.add(self.bob.pk, 1.0)
        list(self.take())
        with self.assertRaises(pipeline.Yielded) as yielded:
            pipeline.take_turn(document.pk, shares)
        self.give_back(yielded.exception)
        fair_queue.requeue(document, files[2])
        self.assertEqual(self.next_file(), "second")

        interrupted = mock.patch.object(pipeline.reading, "read", side_effect=Interrupted)
        stored = mock.patch.object(pipeline.files, "exists", return_value=True)
        with interrupted, stored, self.assertRaises(pipeline.Yielded) as yielded:
            pipeline.read_document(document.pk, files[0])
        self.give_back(yielded.exception)
        self.assertEqual([self.next_file() for _ in files], ["second", "third", "fourth"])

    def give_back(self, yielded):
        """Return the taken job to the queue, as the worker does."""
        ProcrastinateJob.objects.filter(status="doing").update(status="todo", priority=yielded.priority)

    def next_file(self):
        """Take jobs until one is a replacement of a document's file; return its name."""
        while True:
            self.finish_all()
            list(self.take())
            if found := ProcrastinateJob.objects.get(status="doing").args.get("replacement"):
                return found["name"]


class ShareTests(Queue):
    """Turns by time: a person with slow documents does not get most of the time."""

    def read_by_a_worker(self, number, seconds):
        """The owners of the documents that a worker reads, in order; each takes its owner's `seconds`."""
        shares, order = fair_queue.Shares(), []
        while len(order) < number:
            list(self.take())
            job = ProcrastinateJob.objects.get(status="doing")
            document = Document.objects.get(pk=job.args["document_id"])
            try:
                owner_id = pipeline.take_turn(document.pk, shares)
            except pipeline.Yielded as yielded:
                ProcrastinateJob.objects.filter(pk=job.pk).update(status="todo", priority=yielded.priority)
                continue
            order.append(document.owner)
            shares.add(owner_id, seconds[document.owner])
            ProcrastinateJob.objects.filter(pk=job.pk).delete()
        return order

    def test_several_quick_documents_come_before_another_owners_next_slow_one(self):
        self.add_many(self.ann, 28)
        list(self.take())
        first = ProcrastinateJob.objects.get(status="doing")
        for _ in range(3):
            self.add(self.bob)
        ProcrastinateJob.objects.filter(pk=first.pk).update(status="todo")
        order = self.read_by_a_worker(6, {self.ann: 10.0, self.bob: 0.5})
        self.assertEqual(order[:5], [self.ann, self.bob, self.bob, self.bob, self.ann])

    def test_a_stream_of_other_owners_does_not_starve_an_owner_with_long_readings(self):
        self.add_many(self.ann, 5)
        self.add_many(self.bob, 100)
        order = self.read_by_a_worker(30, {self.ann: 10.0, self.bob: 2.0})
        self.assertIn(order.count(self.ann), {4, 5})

    def test_nothing_is_returned_to_the_queue_if_nobody_else_waits(self):
        self.add_many(self.ann, 4)
        self.assertEqual(self.read_by_a_worker(4, {self.ann: 60.0}), [self.ann] * 4)

    def test_a_failed_lookup_of_a_turn_is_retried(self):
        document = self.add(self.ann)
        gone = mock.patch.object(pipeline, "first_positions", side_effect=OperationalError("gone"))
        with gone, self.assertRaises(pipeline.TemporaryFailure):
            pipeline.take_turn(document.pk, fair_queue.Shares())

    def test_a_new_owner_gets_no_credit_for_earlier_time(self):
        shares = fair_queue.Shares()
        shares.add(1, 500.0)
        self.assertIsNone(shares.position_behind(1, {}))
        self.assertIsNone(shares.position_behind(1, {2: 7}))
        shares.add(1, 10.0)
        self.assertEqual(shares.position_behind(1, {2: 7}), 8)
        shares.add(2, 9.0)
        self.assertIsNone(shares.position_behind(1, {2: 8}))
