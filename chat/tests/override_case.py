"""Questions with overrides, asked through the API by a member of a group."""

import json

from django.test import AsyncClient, TransactionTestCase, override_settings

from chat.llm import use_model
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from chatsite.db.threads import in_database
from history.models import Message
from ingestion.tests.factories import make_user


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class OverrideTestCase(TransactionTestCase):
    question = "How many days of leave may be carried over?"

    def setUp(self):
        self.user = make_user("asker", groups=["HR"])
        self.secret = ApiKey.objects.issue(self.user, "test")[1]
        self.group = self.user.groups.get()
        self.model = ScriptedModel(words=["Five."], suggestions=["And then?"])

    async def post(self, *, key="", **overrides):
        body = {
            "messages": [{"role": "user", "content": self.question}],
            "context": {"overrides": overrides},
            "session_state": None,
        }
        headers = {"Authorization": f"Bearer {self.secret}"} | ({"Idempotency-Key": key} if key else {})
        with use_model(self.model):
            return await AsyncClient().post(
                "/chat", json.dumps(body), content_type="application/json", headers=headers
            )

    async def ask(self, **overrides):
        """The context of the answer."""
        response = await self.post(**overrides)
        self.assertEqual(response.status_code, 200, response.content)
        return response.json()["context"]

    async def refused(self, status, member, **overrides):
        response = await self.post(**overrides)
        self.assertEqual(response.status_code, status)
        self.assertIn(member, response.json()["error"])
        self.assertEqual(await in_database(Message.objects.count), 0)

    def step(self, context, title):
        return next((step for step in context["thoughts"] if step["title"] == title), None)

    def found(self, context):
        return [result["sourcefile"] for result in self.step(context, "Results")["description"]]

    def props(self, context):
        return self.step(context, "Generated search query")["props"]

    @property
    def prompt(self):
        return self.model.prompts[-1]
