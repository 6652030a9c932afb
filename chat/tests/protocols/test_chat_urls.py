"""Rules for every chat URL: optional trailing slashes, CSRF tokens with cookies, headers of streams."""

import pytest
from django.test import AsyncClient

from chat.protocols import OpenAI
from chat.tests.golden_exchange import GoldenTestCase
from chat.tests.protocols.test_golden_refusals import ASKED, CHAT_REQUESTS
from chatsite.db.threads import in_database
from history.models import Message

STREAMED = {
    "/chat//stream": "application/json-lines",
    "/chat/stream/": "application/json-lines",
    "/ask//stream/": "application/json-lines",
    "/api/chat//stream": "text/event-stream",
    "/api/minimal/chat/stream/": "text/event-stream",
    "/api/multi-agent-chat//stream": "text/event-stream",
    "/api/minimal/multi-agent-chat/stream/": "text/event-stream",
}
UNSTREAMED = (
    "/chat/",
    "/ask/",
    "/api/chat/",
    "/api/chat/batch/",
    "/api/multi-agent-chat/",
    "/api/minimal/chat/batch",
    "/api/minimal/multi-agent-chat/batch/",
    "/api/messages/chat/",
    "/api/messages/multi-agent-chat",
    "/v1/chat/completions/",
)


@pytest.mark.slow
class ChatUrlTests(GoldenTestCase):
    async def test_trailing_slashes_are_accepted_everywhere(self):
        for path in UNSTREAMED:
            with self.subTest(path):
                response = await self.post(path, ASKED)
                self.assertEqual(response.status_code, 200)
                self.assertEqual(response.headers["Content-Type"], "application/json")

    async def test_every_stream_has_its_media_type_and_is_not_cached_or_buffered(self):
        for path, media_type in STREAMED.items():
            with self.subTest(path):
                response = await self.post(path, ASKED)
                self.assertEqual((response.status_code, response.headers["Content-Type"]), (200, media_type))
                self.assertEqual(response.headers["Cache-Control"], "no-store")
                self.assertEqual(response.headers["X-Accel-Buffering"], "no")

    async def test_a_cookie_without_its_token_is_refused_in_every_protocol(self):
        await in_database(self.user.set_password, "pass")
        await in_database(self.user.save)
        client = AsyncClient(enforce_csrf_checks=True)
        await client.alogin(username="asker", password="pass")
        for name, (path, protocol, body) in CHAT_REQUESTS.items():
            with self.subTest(name):
                response = await client.post(path, body, content_type="application/json")
                # The web component reads `message` and `statusCode` of its errors.
                members = {"error", "message", "statusCode"} if name == "chat_completions" else {"error"}
                self.assertEqual((response.status_code, set(response.json())), (403, members))
                if isinstance(protocol, OpenAI):
                    self.assertEqual(response.json()["error"]["type"], "permission_error")
        self.assertEqual(await Message.objects.acount(), 0)
