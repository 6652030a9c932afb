"""The steps behind an answer, if the operator requires a permission for them."""

import asyncio
import re

import pytest
from django.contrib.auth.models import Permission
from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.events import ContextReady
from chat.llm import use_model
from chat.requests import RunRequest
from chat.tests.runs.test_runs import collect
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.principal import Principal
from chatsite.db.threads import in_database
from ingestion.tests.factories import make_document, make_user


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
@pytest.mark.slow
class ThoughtRightsTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.client.force_login(self.user)
        self.principal = Principal(self.user.pk, "command")
        make_document("guide.md", everyone=True)
        self.accepted = asyncio.run(self.answered())

    async def answered(self):
        with use_model(ScriptedModel(words=["Five [guide.md]."])):
            accepted = await in_database(
                runs.begin, self.principal, RunRequest("Carry over leave until when?")
            )
            runs.start(accepted)
            await collect(self.principal, accepted.run_id)
        return accepted

    def told(self):
        events = asyncio.run(collect(self.principal, self.accepted.run_id))
        return next(event for _, event in events if isinstance(event, ContextReady)).thoughts

    def page(self, query=""):
        return self.client.get(f"/c/{self.accepted.conversation_id}/{query}").content.decode()

    def test_everyone_sees_the_steps_by_default(self):
        self.assertTrue(self.told())
        self.assertIn("How it was found", self.page())
        self.assertIn('<ol class="thoughts">', self.page("?source=1.1&view=thoughts"))

    @override_settings(THOUGHTS_RESTRICTED=True)
    def test_restricted_steps_are_shown_to_people_with_the_permission(self):
        self.assertEqual(self.told(), ())
        self.assertNotIn("How it was found", self.page())
        panel = self.page("?source=1.1&view=thoughts")
        self.assertNotIn("thoughts", panel)
        self.assertIn("carry over five days", re.sub(r"</?mark[^>]*>", "", panel))
        self.user.user_permissions.add(Permission.objects.get(codename="see_thoughts"))
        self.assertTrue(self.told())
        self.assertIn("How it was found", self.page())
