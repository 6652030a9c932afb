"""Idle pages hear of questions that were asked elsewhere, and of the end of their access."""

import asyncio
from contextlib import asynccontextmanager
from unittest.mock import patch

import pytest
from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.contrib.sessions.models import Session
from django.test import Client, TransactionTestCase, override_settings

from chat import runs
from chat.llm import use_model
from chat.portal.frames import newer_turns
from chat.requests import RunRequest
from chat.routing import websocket_urlpatterns
from chat.runs import revalidation
from chat.tests.scripted_model import ScriptedModel
from chat.tests.sockets import Socket
from chatsite.accounts.principal import valid_among
from chatsite.db.threads import in_database
from history import recording
from ingestion.tests.factories import command_principal, make_document, make_user

APPLICATION = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
QUESTION = "Carry over leave until when?"


class Leaving:
    """Runs the application for a page that leaves: once `gone` is set, sending is an error."""

    def __init__(self, error):
        self.error = error
        self.gone, self.refused = False, asyncio.Event()

    async def __call__(self, scope, receive, send):
        async def attempt(message):
            if self.gone:
                self.refused.set()
                raise self.error
            await send(message)

        await APPLICATION(scope, receive, attempt)


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
@pytest.mark.slow
class WaitingTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.principal = command_principal(self.user)
        self.conversation = recording.open_conversation(self.principal)
        make_document("guide.md", everyone=True)

    def cookie(self):
        client = Client()
        client.force_login(self.user)
        return client.cookies["sessionid"].value

    async def opened(self, application=APPLICATION):
        headers = [(b"cookie", f"sessionid={await in_database(self.cookie)}".encode())]
        socket = Socket(application, f"/ws/c/{self.conversation.pk}/", headers=headers)
        self.assertTrue((await socket.connect())[0])
        return socket

    @asynccontextmanager
    async def listening(self):
        task = asyncio.create_task(runs.listening())
        try:
            async with asyncio.timeout(5):
                while not runs.hub().listening:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def ask_elsewhere(self):
        """Ask as a page of another process does."""
        accepted = await in_database(runs.begin, self.principal, RunRequest(QUESTION, self.conversation.pk))
        runs.start(accepted)
        return accepted

    async def until_done(self, socket):
        while True:
            told = await socket.receive_json_from(10)
            if done := [each for each in told["messages"] if each["type"] == "done"]:
                return done[0]

    async def test_a_question_of_another_page_is_announced_and_its_answer_follows(self):
        model = ScriptedModel(words=["Five ", "days ", "[guide.md]."], pause=0.05)
        with use_model(model):
            async with self.listening():
                socket = await self.opened()
                await socket.send_json_to({"type": "wait", "first": 0})
                for first in (0, 2):
                    self.assertTrue(await socket.receive_nothing(0.2))
                    accepted = await self.ask_elsewhere()
                    asked = await socket.receive_json_from(10)
                    self.assertEqual((asked["type"], asked["run"]), ("asked", str(accepted.run_id)))
                    self.assertIn(f'id="e-{first}"', asked["html"])
                    self.assertEqual((await self.until_done(socket))["state"], "complete")
                    await socket.send_json_to({"type": "wait", "first": first + 2})
                await socket.disconnect()

    async def test_questions_answered_before_the_wait_are_announced_at_once(self):
        with use_model(ScriptedModel(words=["Five days."])):
            accepted = await self.ask_elsewhere()
            await runs.wait_for_result(self.principal, accepted.run_id)
        socket = await self.opened()
        await socket.send_json_to({"type": "wait", "first": 0})
        asked = await socket.receive_json_from(10)
        self.assertEqual((asked["type"], asked["run"]), ("asked", None))
        self.assertIn("Five days.", asked["html"])
        await socket.disconnect()

    async def test_another_person_cannot_wait_for_a_conversation(self):
        with use_model(ScriptedModel()):
            accepted = await self.ask_elsewhere()
            await runs.wait_for_result(self.principal, accepted.run_id)
        stranger = command_principal(await in_database(make_user, "stranger"))
        self.assertIsNone(await in_database(newer_turns, stranger, self.conversation.pk, 0))

    async def test_signing_out_closes_idle_pages_with_one_query_for_all(self):
        looks = []

        def counted(principals):
            looks.append(len(principals))
            return valid_among(principals)

        with patch.object(revalidation, "valid_among", counted):
            sockets = [await self.opened() for _ in range(3)]
            await in_database(Session.objects.all().delete)
            for socket in sockets:
                self.assertEqual((await socket.receive_output(timeout=10))["code"], 4404)
                await socket.disconnect()
        self.assertLess(len(looks), 3)

    async def test_a_page_that_closes_during_an_answer_causes_no_error_in_the_log(self):
        for error in (ConnectionError, RuntimeError):
            leaving = Leaving(error)
            self.conversation = await in_database(recording.open_conversation, self.principal)
            with (
                use_model(ScriptedModel(words=["day "] * 40, pause=0.02)),
                self.assertNoLogs("chat.portal.consumers"),
            ):
                socket = await self.opened(leaving)
                await socket.send_json_to(
                    {"type": "ask", "text": QUESTION, "key": f"key-of-{error.__name__}"}
                )
                self.assertEqual((await socket.receive_json_from(10))["type"], "accepted")
                await socket.receive_json_from(10)
                leaving.gone = True
                await asyncio.wait_for(leaving.refused.wait(), 10)
                await socket.disconnect()
