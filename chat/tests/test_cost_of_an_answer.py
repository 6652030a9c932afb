"""How much an answer asks of the database: what is counted here is most of what it costs the web process."""

import threading
from unittest.mock import patch

import psycopg
from django.db import connection
from django.test import AsyncClient, TransactionTestCase, override_settings

from chat.llm import use_model
from chat.llm.scripted import ScriptedModel
from chatsite.accounts.models import ApiKey
from chatsite.db import threads
from ingestion.tests.factories import make_document, make_user

MOST_PIECES = 8  # of work, each with a thread, a session and a transaction of its own
MOST_STATEMENTS = 21
MOST_ROUND_TRIPS = 42  # to PostgreSQL and back, of which three each begin the session of a piece

# Once a second for all answers of a process: not counted, and met where the machine is slow.
SHARED = {"valid_among", "count_readable_sources", "flush"}


class Counted:
    """Stands for chatsite.db.threads._call, through which all work goes."""

    def __init__(self):
        self.pieces = []
        self.statements = []
        self.round_trips = 0
        self._thread = threading.local()
        self._call = threads._call

    def __call__(self, reader, function):
        if function.func.__name__ in SHARED:
            return self._call(reader, function)
        self.pieces.append(function.func.__name__)
        self._thread.counts = True
        try:
            with connection.execute_wrapper(self._execute):
                return self._call(reader, function)
        finally:
            self._thread.counts = False

    def waiting(self):
        """Counts what goes to PostgreSQL and comes back, for the length of a block."""
        wait = psycopg.Connection.wait

        def counted(session, *arguments):
            self.round_trips += getattr(self._thread, "counts", False)
            return wait(session, *arguments)

        return patch.object(psycopg.Connection, "wait", counted)

    def _execute(self, execute, statement, *rest):
        self.statements.append(statement)
        return execute(statement, *rest)


@override_settings(JOURNAL_FLUSH_SECONDS=5)  # what is shared by all answers of a process is not counted
class CostTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        make_document(everyone=True)
        _, self.key = ApiKey.objects.issue(self.user, "a program")

    async def ask(self):
        """A first question over HTTP."""
        body = {"messages": [{"role": "user", "content": "Carry over leave until when?"}]}
        response = await AsyncClient().post(
            "/chat/stream", body, "application/json", headers={"Authorization": f"Bearer {self.key}"}
        )
        content = b"".join([piece async for piece in response.streaming_content])
        self.assertIn(b"days", content)

    async def test_the_work_of_one_answer_has_a_ceiling(self):
        with use_model(ScriptedModel(words=["Five ", "days [guide.md]."])):
            await self.ask()  # what is looked up once in a process is known now
            counted = Counted()
            with patch.object(threads, "_call", counted), counted.waiting():
                await self.ask()
        self.assertLessEqual(len(counted.pieces), MOST_PIECES, counted.pieces)
        self.assertLessEqual(len(counted.statements), MOST_STATEMENTS, "\n\n".join(counted.statements))
        self.assertLessEqual(counted.round_trips, MOST_ROUND_TRIPS)
        self.assertIn("count_readable", counted.pieces)
