"""A stream that was opened with an ID token ends when the token expires, but its answer is completed."""

import json
import time

import pytest
from django.test import AsyncClient, TransactionTestCase, override_settings

from chat.llm import use_model
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import User
from chatsite.accounts.oidc.id_tokens import LEEWAY
from chatsite.accounts.tests.fake_provider import FakeProvider
from chatsite.db.threads import in_database
from chatsite.tests.limits import MARGIN_SECONDS
from ingestion.tests.factories import make_document

BODY = json.dumps({"messages": [{"role": "user", "content": "Carry over leave until when?"}]})


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
@pytest.mark.slow
class TokenStreams(TransactionTestCase):
    def setUp(self):
        self.provider = FakeProvider()
        self.enterContext(self.provider)
        self.enterContext(override_settings(**self.provider.settings))
        make_document("guide.md", everyone=True)

    async def stream(self, token, during=None, count=300):
        """Return the seconds until the stream ended, and its lines."""
        headers = {"Authorization": f"Bearer {token}"}
        with use_model(ScriptedModel(words=["word "] * count, pause=0.1)):
            answer = await AsyncClient().post("/chat/stream", BODY, "application/json", headers=headers)
            self.assertEqual(answer.status_code, 200)
            begun, lines = time.monotonic(), []
            async for part in answer.streaming_content:
                lines += [json.loads(line) for line in part.splitlines()]
                if during and len(lines) >= 4:
                    await in_database(during)
                    during = None
            return time.monotonic() - begun, lines

    async def test_a_stream_ends_when_its_token_expires(self):
        seconds, lines = await self.stream(self.provider.token(exp=int(time.time()) - LEEWAY + 2))
        self.assertLess(seconds, 4.5 + MARGIN_SECONDS)
        self.assertIn("error", lines[-1])

    async def test_a_stream_ends_when_the_account_is_disabled(self):
        seconds, lines = await self.stream(
            self.provider.token(), during=lambda: User.objects.update(is_active=False)
        )
        self.assertLess(seconds, 4.5 + MARGIN_SECONDS)
        self.assertLess(len(lines), 250)  # it ended in the middle of the answer

    async def test_a_stream_is_complete_while_the_token_is_valid(self):
        _, lines = await self.stream(self.provider.token(), count=20)
        text = "".join(line.get("delta", {}).get("content") or "" for line in lines)
        self.assertEqual(text.split(), ["word"] * 20)
