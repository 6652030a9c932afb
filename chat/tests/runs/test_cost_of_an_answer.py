"""The number of database calls of an answer, which are most of its cost for the web process."""

import threading
from contextlib import contextmanager
from unittest.mock import patch

import psycopg
from django.db import connection
from django.test import AsyncClient, TransactionTestCase, override_settings

from chat.engine import searching
from chat.llm import use_model
from chat.runs import active
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from chatsite.db import threads
from chatsite.db.backend.base import ReaderCursor
from chatsite.db.backend.database_sessions import Session
from chatsite.tests.limits import HANG_SECONDS
from ingestion.tests.factories import make_document, make_user

MAX_PIECES = 4  # calls of database threads, each with its own session and transaction
MAX_MESSAGES = 12
MAX_ROUND_TRIPS = 18

WRITTEN_TABLES = [
    "chat_journalentry",
    "chat_run",
    "history_conversation",
    "history_message",
    "history_source",
]
# Indexes whose columns are a prefix of another index of the same table, which serves the same queries.
REDUNDANT = """
    SELECT short.indexrelid::regclass::text
    FROM pg_index AS short
    JOIN pg_index AS long ON long.indrelid = short.indrelid AND long.indexrelid <> short.indexrelid
    JOIN pg_class AS known ON known.oid = long.indexrelid
    JOIN pg_am AS method ON method.oid = known.relam AND method.amname = 'btree'
    WHERE
        short.indrelid = ANY(%s::regclass[])
        AND NOT short.indisunique
        AND short.indpred IS NULL AND long.indpred IS NULL
        AND short.indexprs IS NULL AND long.indexprs IS NULL
        AND (long.indkey::int2[])[0:short.indnkeyatts - 1] = (short.indkey::int2[])[0:short.indnkeyatts - 1]
"""

# Made once a second for all answers of a process, so not counted; they occur on a slow machine.
SHARED = {"valid_among", "count_readable_sources", "flush"}


class Counted:
    """Replaces chatsite.db.threads._call, which all database work passes through."""

    def __init__(self):
        self.pieces = []
        self.messages = []
        self.prepared = 0  # statements that a session prepares
        self.round_trips = 0
        self._thread = threading.local()
        self._call = threads._call

    def __call__(self, reader, asked, function):
        if function.__name__ in SHARED:
            return self._call(reader, asked, function)
        self.pieces.append(function.__name__)
        self._thread.counts = True
        try:
            return self._call(reader, asked, function)
        finally:
            self._thread.counts = False

    @contextmanager
    def watching(self):
        """Count messages to PostgreSQL and round trips within a block."""

        def counted(method):
            def sending(session, text, *rest, **options):
                if text and getattr(self._thread, "counts", False):  # empty: the pool's check
                    if "PREPARE " in text:
                        self.prepared += 1
                    else:
                        self.messages.append(text)
                return method(session, text, *rest, **options)

            return sending

        def waiting(session, *arguments):
            self.round_trips += getattr(self._thread, "counts", False)
            return wait(session, *arguments)

        wait = psycopg.Connection.wait
        with (
            patch.object(threads, "_call", self),
            patch.object(psycopg.Connection, "wait", waiting),
            patch.object(Session, "exchange", counted(Session.exchange)),
            patch.object(ReaderCursor, "execute", counted(ReaderCursor.execute)),
        ):
            yield


@override_settings(JOURNAL_FLUSH_SECONDS=5)  # keeps work that all answers of a process share out of the count
@patch.object(active, "JUST_ACCEPTED_SECONDS", HANG_SECONDS)  # no second check of rights
@patch.object(searching, "JUST_FOUND_SECONDS", HANG_SECONDS)
class CostTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        make_document(everyone=True)
        _, self.key = ApiKey.objects.issue(self.user, "a program")

    async def ask(self):
        """Ask a first question over HTTP."""
        body = {"messages": [{"role": "user", "content": "Carry over leave until when?"}]}
        response = await AsyncClient().post(
            "/chat/stream", body, "application/json", headers={"Authorization": f"Bearer {self.key}"}
        )
        content = b"".join([piece async for piece in response.streaming_content])
        self.assertIn(b"days", content)

    async def test_the_database_work_of_one_answer_is_limited(self):
        with use_model(ScriptedModel(words=["Five ", "days [guide.md]."])):
            await self.ask()  # fills the caches of the process
            counted = Counted()
            with counted.watching():
                await self.ask()
        self.assertLessEqual(len(counted.pieces), MAX_PIECES, counted.pieces)
        self.assertLessEqual(len(counted.messages), MAX_MESSAGES, "\n\n".join(counted.messages))
        self.assertLessEqual(counted.round_trips - counted.prepared, MAX_ROUND_TRIPS)
        self.assertIn("_verified_or_found", counted.pieces)

    def test_no_table_of_an_answer_has_an_index_that_another_one_replaces(self):
        with connection.cursor() as cursor:
            cursor.execute(REDUNDANT, [WRITTEN_TABLES])
            self.assertEqual(cursor.fetchall(), [])

    def test_the_journal_has_one_index(self):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_index WHERE indrelid = 'chat_journalentry'::regclass")
            self.assertEqual(cursor.fetchone(), (1,))
