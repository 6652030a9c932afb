"""Documents that are deleted or closed between the search and the answer are not used."""

from unittest import mock

from django.db import IntegrityError

from chat.engine import searching
from chat.tests.override_case import OverrideTestCase
from chatsite.db.threads import (
    in_database,
    reading_everything,
)
from history.models import Message, Source
from ingestion import documents as pipeline
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document
from ingestion.tests.factories import make_document

FACT = "Five days of leave may be carried over until 31 March."


class SourcesThatGoTests(OverrideTestCase):
    def setUp(self):
        super().setUp()
        make_document("first.md", [f"{FACT} Honeycomb."], users=[self.user])
        make_document("second.md", [f"{FACT} Really."], users=[self.user])

    def first(self):
        return Document.objects.get(name="first.md")

    async def answered_without_the_first(self, name, change):
        """Ask, and run `change` when the function `name` of the engine's search has returned."""
        done = getattr(searching, name)

        def then(*arguments):
            result = done(*arguments)
            with reading_everything():
                change()
            return result

        with mock.patch.object(searching, name, then):
            response = await self.post()
        self.assertEqual(response.status_code, 200, response.content)
        self.assertNotIn("first.md", response.content.decode())
        self.assertEqual([view.label for view in self.prompt.sources], ["second.md"])
        self.assertEqual([view.rank for view in self.prompt.sources], [1])
        self.assertEqual(
            await in_database(lambda: [each.label for each in Source.objects.all()]), ["second.md"]
        )
        states = await in_database(lambda: set(Message.objects.values_list("state", flat=True)))
        self.assertEqual(states, {"complete"})

    async def test_a_document_deleted_after_the_search_is_not_used(self):
        await self.answered_without_the_first("candidates", lambda: pipeline.delete_document(self.first()))

    async def test_a_document_closed_after_the_search_is_not_used(self):
        await self.answered_without_the_first("candidates", lambda: set_audience(self.first(), Audience()))

    async def test_a_document_deleted_while_sources_are_stored_is_not_used(self):
        def once():
            if documents := Document.objects.filter(name="first.md"):
                pipeline.delete_documents(documents)

        with mock.patch.object(searching, "JUST_FOUND_SECONDS", -1):  # so that access is checked again
            await self.answered_without_the_first("_still_readable", once)

    async def test_an_internal_error_is_not_retried_forever(self):
        with (
            mock.patch.object(searching, "_record", side_effect=IntegrityError) as record,
            self.assertLogs("chat.runs.manager", "ERROR"),
        ):
            self.assertEqual((await self.post()).status_code, 500)
        self.assertEqual(record.call_count, searching.TRIES)
