"""An answer that ends while its page is being rendered."""

from unittest.mock import patch

from django.test import TestCase

from chat import runs
from chat.events import Finished, TextDelta
from chat.requests import RunRequest
from chat.runs import finish
from chat.runs.journal import Batch
from history.models import Message
from ingestion.tests.factories import command_principal, make_user


class MeanwhileTests(TestCase):
    def setUp(self):
        user = make_user("asker")
        self.run = runs.begin(command_principal(user), RunRequest("When does leave expire?"))
        self.client.force_login(user)

    def end(self):
        started = self.run.started("fake")
        events = [started, TextDelta("On 31 March."), Finished(Message.State.STOPPED)]
        ended = finish.finish_run(self.run, Batch(self.run.run_id, 1, events), events)
        self.assertEqual(ended, events[-1:])

    def page(self):
        return self.client.get(f"/c/{self.run.conversation_id}/").content.decode()

    def test_a_page_that_shows_a_running_answer_follows_it_to_its_end(self):
        # Called between the queries for messages and for their runs.
        with patch("chat.portal.conversation.shown_answers.may_see_thoughts", lambda _: self.end()):
            page = self.page()
        self.assertIn('aria-busy="true"', page)
        self.assertIn(f'data-run="{self.run.run_id}"', page)
        self.assertIn("On 31 March.", page)

    def test_a_page_that_shows_a_finished_answer_follows_nothing(self):
        self.end()
        page = self.page()
        self.assertIn('data-state="stopped"', page)
        self.assertNotIn("data-run", page)
