"""A WebSocket client for tests. (Channels' own needs daphne, which is not installed.)"""

import json

from asgiref.testing import ApplicationCommunicator

from chatsite.tests.limits import HANG_SECONDS


class Socket(ApplicationCommunicator):
    """Speaks to an ASGI application as a server would."""

    def __init__(self, application, path, headers=()):
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": list(headers),
            "subprotocols": [],
        }
        super().__init__(application, scope)

    async def connect(self):
        """Whether it was accepted, and the code of the close if not."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(timeout=HANG_SECONDS)
        return answer["type"] == "websocket.accept", answer.get("code")

    def receive_output(self, timeout=HANG_SECONDS):
        return super().receive_output(timeout)

    def wait(self, timeout=HANG_SECONDS):
        return super().wait(timeout)

    async def send_text(self, text):
        await self.send_input({"type": "websocket.receive", "text": text})

    async def send_json_to(self, message):
        await self.send_text(json.dumps(message))

    async def receive_json_from(self, seconds=HANG_SECONDS):
        answer = await self.receive_output(timeout=seconds)
        assert answer["type"] == "websocket.send", answer
        return json.loads(answer["text"])

    async def disconnect(self):
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=HANG_SECONDS)
