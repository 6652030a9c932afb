"""The portal's socket: sends an answer as the page shows it, and nothing of other people's conversations."""

import asyncio
import json
from datetime import timedelta
from unittest.mock import patch
from uuid import uuid4

import pytest
from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.contrib.sessions.models import Session
from django.test import Client, TransactionTestCase, override_settings
from django.utils import timezone

from chat import runs
from chat.limits import MESSAGES_AT_WORK, message_turns
from chat.llm import use_model
from chat.models import Agent, Run
from chat.portal.consumers import MAX_MESSAGES, ConversationConsumer
from chat.portal.conversation.turns import turns_of
from chat.requests import RunRequest
from chat.routing import websocket_urlpatterns
from chat.runs.manager import run_manager
from chat.tests.held_model import HeldModel
from chat.tests.portal.test_transcript import Reader
from chat.tests.scripted_model import ScriptedModel
from chat.tests.sockets import Socket
from chatsite.db.threads import in_database
from history import recording
from history.models import Conversation, Message
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.tests.factories import command_principal, make_document, make_user

APPLICATION = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
KEY = "k" * 32
QUESTION = "Carry over leave until when?"


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class ConsumerCase(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.principal = command_principal(self.user)
        self.conversation = recording.open_conversation(self.principal)
        self.document = make_document("guide.md", everyone=True)

    def cookie(self, user):
        client = Client()
        client.force_login(user)
        return client.cookies["sessionid"].value

    async def socket(self, user=None, conversation_id=None):
        user = user or self.user
        cookie = await in_database(self.cookie, user)
        headers = [(b"cookie", f"sessionid={cookie}".encode())]
        path = f"/ws/c/{conversation_id or self.conversation.pk}/"
        return Socket(APPLICATION, path, headers=headers)

    async def opened(self):
        socket = await self.socket()
        self.assertEqual((await socket.connect())[0], True)
        return socket


@pytest.mark.slow
class ConsumerTests(ConsumerCase):
    async def until_done(self, socket, message=None):
        """Receive everything up to the end of the answer; return the reader's state and the message `done`.

        `message` is one that was already received.
        """
        reader = Reader()
        while True:
            message = message or await socket.receive_json_from(10)
            reader.take(message.get("messages", []))
            for part in message.get("messages", []):
                if part["type"] == "done":
                    return reader, part
            message = None

    async def ask(self, socket, text=QUESTION, key=KEY):
        await socket.send_json_to({"type": "ask", "text": text, "key": key})
        return await socket.receive_json_from(10)

    async def test_a_question_is_acknowledged_when_it_is_stored_and_the_answer_streams(self):
        socket = await self.opened()
        with use_model(ScriptedModel(words=["Five ", "days [guide.md].\n\n", "No more."])):
            accepted = await self.ask(socket)
            self.assertEqual(accepted["type"], "accepted")
            self.assertIn(QUESTION, accepted["html"])
            self.assertTrue(await in_database(Run.objects.filter(pk=accepted["run"]).exists))
            reader, done = await self.until_done(socket)
        self.assertEqual(len(reader.blocks), 2)
        self.assertEqual((done["state"], done["sources"]), ("complete", 1))
        self.assertNotIn("body", done)
        page = await in_database(self.page)
        self.assertIn("\n".join(reader.blocks), page)
        self.assertIn(done["end"].split('<div class="tools"')[0].strip()[:200], page)
        await socket.disconnect()

    async def test_neither_the_end_of_the_text_nor_the_next_question_waits_for_follow_up_questions(self):
        class LateModel(ScriptedModel):
            async def followups(self, prompt, answer):
                await asyncio.Event().wait()

        socket = await self.opened()
        with use_model(LateModel(words=["Five days [guide.md]."])):
            await self.ask(socket)
            whole = None
            while whole is None:
                parts = (await socket.receive_json_from(10)).get("messages", [])
                whole = next((part for part in parts if part["type"] == "whole"), None)
            self.assertEqual((whole["state"], whole["sources"]), ("complete", 1))
            self.assertIn('class="source-row', whole["end"])
            with use_model(ScriptedModel()):
                await socket.send_json_to({"type": "ask", "text": "And then?", "key": "l" * 32})
                while (told := await socket.receive_json_from(10)).get("type") is None:
                    pass
                self.assertEqual(told["type"], "accepted")
                await self.until_done(socket)
        messages = Message.objects.filter(conversation=self.conversation, role="assistant")
        states = await in_database(lambda: [row.state for row in messages.order_by("position")])
        self.assertEqual(states, ["complete", "complete"])
        await socket.disconnect()

    def page(self):
        client = Client()
        client.force_login(self.user)
        return client.get(f"/c/{self.conversation.pk}/").content.decode()

    async def test_the_same_key_asks_once(self):
        socket = await self.opened()
        with use_model(ScriptedModel()):
            first = await self.ask(socket)
            await self.until_done(socket)
            second = await self.ask(socket)
        self.assertEqual(first["run"], second["run"])
        self.assertEqual(await in_database(Run.objects.count), 1)
        await socket.disconnect()

    async def test_a_question_is_searched_in_the_scope_that_the_page_shows(self):
        socket = await self.opened()
        for number, (said, kept) in enumerate(
            (("own", "own"), ("nowhere", "own"), (7, "own"), ("all", "all"))
        ):
            with use_model(ScriptedModel(words=["Five days."])):
                asked = {
                    "type": "ask",
                    "text": f"{QUESTION} {number}",
                    "key": f"{number}" * 32,
                    "scope": said,
                }
                await socket.send_json_to(asked)
                await self.until_done(socket)
            conversation = await in_database(Conversation.objects.get, pk=self.conversation.pk)
            self.assertEqual(conversation.scope, kept)
        await socket.disconnect()

    async def test_a_question_counts_as_activity_of_the_session(self):
        socket = await self.opened()
        before = await in_database(Session.objects.values_list("expire_date", flat=True).get)
        later = timezone.now() + timedelta(days=1)
        with patch("django.utils.timezone.now", return_value=later), use_model(ScriptedModel()):
            await self.ask(socket)
            await self.until_done(socket)
        after = await in_database(Session.objects.values_list("expire_date", flat=True).get)
        self.assertGreater(after - before, timedelta(hours=20))
        await socket.disconnect()

    async def test_a_refused_question_says_why(self):
        socket = await self.opened()
        refused = await self.ask(socket, text="  ")
        self.assertEqual((refused["type"], refused["code"]), ("refused", "message_empty"))
        await socket.disconnect()

    async def begun(self, **model):
        accepted = await in_database(runs.begin, self.principal, RunRequest(QUESTION, self.conversation.pk))
        runs.start(accepted)
        return accepted

    async def test_closing_the_socket_does_not_end_the_answer_and_the_next_one_gets_all_of_it(self):
        words = [f"word{number} " for number in range(60)]
        with use_model(ScriptedModel(words=words, pause=0.01)):
            accepted = await self.begun()
            first = await self.opened()
            await first.send_json_to({"type": "follow", "run": str(accepted.run_id), "after": 0})
            await first.receive_json_from(10)
            await first.disconnect()
            self.assertIn(accepted.run_id, run_manager().active)
            second = await self.opened()
            await second.send_json_to({"type": "follow", "run": str(accepted.run_id), "after": 0})
            reader, done = await self.until_done(second)
        self.assertEqual(done["state"], "complete")
        self.assertIn("".join(words).strip(), "\n".join(reader.blocks))
        await second.disconnect()

    async def test_a_deleted_source_is_not_named_in_later_messages(self):
        model = HeldModel(words=["Five days [guide.md].\n\n", "And ", "more."])
        with use_model(model):
            accepted = await self.begun()
            first = await self.opened()
            await first.send_json_to({"type": "follow", "run": str(accepted.run_id), "after": 0})
            while "guide" not in json.dumps(await first.receive_json_from(10)).lower():
                pass  # the search has found the document, so that its access can be revoked
            await in_database(set_audience, self.document, Audience())
            second = await self.opened()
            await second.send_json_to({"type": "follow", "run": str(accepted.run_id), "after": 0})
            message = await second.receive_json_from(10)
            model.released.set()
            reader, done = await self.until_done(second, message)
        self.assertIn("cite gone", reader.blocks[0])
        self.assertNotIn("guide", json.dumps([reader.blocks, done]).lower())
        await first.disconnect()
        await second.disconnect()

    async def test_the_end_of_an_answer_does_not_name_a_lost_source(self):
        with use_model(ScriptedModel(words=["Five days [guide.md]", *[" and so on"] * 200], pause=0.05)):
            socket = await self.opened()
            await self.ask(socket)
            while "cite" not in json.dumps(await socket.receive_json_from(10)):
                pass  # the paragraph with the citation is not finished
            await in_database(set_audience, self.document, Audience())
            end = ""
            while '"done"' not in end:
                end = json.dumps(await socket.receive_json_from(10))
        self.assertIn("interrupted", end)
        self.assertIn("and so on and so on", end)
        self.assertNotIn("guide", end.lower())
        await socket.disconnect()

    async def test_stopping_ends_the_answer_and_keeps_its_text(self):
        words = [f"word{number} " for number in range(2000)]
        with use_model(ScriptedModel(words=words, pause=0.01)):
            socket = await self.opened()
            accepted = await self.ask(socket)
            await socket.receive_json_from(10)
            await socket.send_json_to({"type": "stop", "run": accepted["run"]})
            _, done = await self.until_done(socket)
        self.assertEqual(done["state"], "stopped")
        self.assertIn("You stopped this answer.", done["end"])
        await socket.disconnect()

    async def test_an_old_answer_is_sent_from_its_row(self):
        with use_model(ScriptedModel(words=["Five days [guide.md]."])):
            socket = await self.opened()
            accepted = await self.ask(socket)
            await self.until_done(socket)
        await socket.send_json_to({"type": "follow", "run": accepted["run"], "after": 99})
        message = await socket.receive_json_from(10)
        whole = next(part for part in message["messages"] if part["type"] == "whole")
        self.assertIn("Five", whole["body"])
        _, done = await self.until_done(socket)
        self.assertNotIn("body", done)  # the page already has it
        await socket.disconnect()

    async def test_foreign_and_unknown_ids_are_refused_in_the_same_way(self):
        other = await in_database(make_user, "other")
        for socket in (
            await self.socket(user=other),
            await self.socket(conversation_id=uuid4()),
            Socket(APPLICATION, f"/ws/c/{self.conversation.pk}/"),
        ):
            self.assertEqual(await socket.connect(), (False, 4404))

    async def test_another_persons_run_cannot_be_followed_or_stopped(self):
        accepted = None
        with use_model(ScriptedModel(words=["a "] * 200, pause=0.01)):
            accepted = await self.begun()
            other = await in_database(make_user, "other")
            theirs = await in_database(recording.open_conversation, command_principal(other))
            socket = await self.socket(user=other, conversation_id=theirs.pk)
            await socket.connect()
            answers = []
            for run in (accepted.run_id, uuid4()):
                for kind in ("follow", "stop"):
                    await socket.send_json_to({"type": kind, "run": str(run)})
                    answers.append(await socket.receive_json_from(10))
            self.assertEqual(answers[:2], answers[2:])
            self.assertEqual({answer["message"] for answer in answers}, {"There is no such answer."})
            run = await in_database(Run.objects.get, pk=accepted.run_id)
            self.assertFalse(run.stop_requested)
            await socket.disconnect()
            await run_manager().shutdown()

    async def test_signing_out_ends_the_messages_of_a_socket(self):
        with use_model(ScriptedModel(words=["a "] * 2000, pause=0.01)):
            socket = await self.opened()
            await self.ask(socket)
            await in_database(Session.objects.all().delete)
            while True:
                output = await socket.receive_output(timeout=5)
                if output["type"] == "websocket.close":
                    break
            self.assertEqual(output["code"], 4404)
            await run_manager().shutdown()

    async def test_a_socket_gets_empty_frames_while_nothing_happens(self):
        with (
            use_model(ScriptedModel(words=["a "] * 3, pause=3)),
            patch("chat.portal.consumers.SILENT_LOOKS", 1),
        ):
            socket = await self.opened()
            await self.ask(socket)
            while (await socket.receive_json_from(5))["messages"]:
                pass
            await socket.disconnect()
            await run_manager().shutdown()

    async def test_a_question_after_signing_out_is_not_asked(self):
        socket = await self.opened()
        await in_database(Session.objects.all().delete)
        await socket.send_json_to({"type": "ask", "text": QUESTION, "key": KEY})
        self.assertEqual((await socket.receive_output(timeout=5))["code"], 4404)
        self.assertEqual(await in_database(Message.objects.count), 0)

    async def test_an_invalid_message_closes_the_socket(self):
        for sent, code in (
            ({"bytes": b"\x00"}, 1003),
            ({"text": "x" * 250_001}, 1009),
            ({"text": "{"}, 4400),
            ({"text": "[" * 100_000}, 4400),
            ({"text": "[]"}, 4400),
            ({"text": '{"type": 1}'}, 4400),
            ({"text": '{"type": "ask", "text": 1, "key": "kkkkkkkkkk"}'}, 4400),
            ({"text": '{"type": "ask", "text": "a", "key": "\\u0000"}'}, 4400),
        ):
            socket = await self.opened()
            await socket.send_input({"type": "websocket.receive", **sent})
            self.assertEqual((await socket.receive_output(timeout=5))["code"], code, str(sent)[:60])
            await socket.disconnect()

    async def test_a_message_of_another_version_is_ignored(self):
        socket = await self.opened()
        await socket.send_json_to({"type": "later", "more": 1})
        with use_model(ScriptedModel()):
            self.assertEqual((await self.ask(socket))["type"], "accepted")
            await self.until_done(socket)
        await socket.disconnect()

    async def test_two_messages_of_a_person_are_processed_at_a_time_across_pages(self):
        at_work, most = 0, 0

        async def slow(consumer, message):
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0.02)
            at_work -= 1
            await consumer._send_message({"type": "done"})

        sockets = [await self.opened() for _ in range(6)]
        with patch.object(ConversationConsumer, "_act", slow):
            await asyncio.gather(*(socket.send_json_to({"type": "wait", "first": 0}) for socket in sockets))
            for socket in sockets:
                await socket.receive_json_from()
        self.assertEqual(most, MESSAGES_AT_WORK)
        self.assertIsNot(message_turns(self.user.pk), message_turns(self.user.pk + 1))
        for socket in sockets:
            await socket.disconnect()

    async def test_a_flood_closes_the_socket(self):
        socket = await self.opened()
        for _ in range(MAX_MESSAGES + 1):
            await socket.send_text(json.dumps({"type": "follow", "run": None}))
        codes = [(await socket.receive_output(timeout=5)).get("code") for _ in range(MAX_MESSAGES + 1)]
        self.assertEqual(codes[-1], 4429)
        await socket.disconnect()

    async def test_a_team_is_sent_message_by_message_with_names(self):
        await in_database(Agent.objects.all().delete)
        for order, name in enumerate(["Ann", "Bob"]):
            await in_database(Agent.objects.create, name=name, description="-", instructions="-", order=order)
        request = RunRequest("Carry over leave until when?", team=True)
        with use_model(ScriptedModel(words=["Five ", "days.\n\n", "Yes."], pause=0.01)):
            accepted = await in_database(runs.begin, self.principal, request)
            runs.start(accepted)
            socket = await self.socket(conversation_id=accepted.conversation_id)
            self.assertTrue((await socket.connect())[0])
            await socket.send_json_to({"type": "follow", "run": str(accepted.run_id), "after": 0})
            frames = [await socket.receive_json_from()]
            while frames[-1]["messages"][-1]["type"] != "done":
                frames.append(await socket.receive_json_from())
        told = [(frame["place"], message["type"]) for frame in frames for message in frame["messages"]]
        kinds = [kind for _, kind in told]
        self.assertEqual((kinds.count("part"), kinds.count("next"), kinds.count("done")), (1, 1, 1))
        self.assertEqual({place for place, _ in told}, {1, 2})
        self.assertLess(told.index((1, "part")), told.index((2, "next")))
        # The page of a reader who joins in the middle already shows a part, so it is reset.
        self.assertEqual(told[told.index((2, "next")) + 1], (2, "reset"))
        following = next(
            message for frame in frames for message in frame["messages"] if message["type"] == "next"
        )
        self.assertIn("Bob", following["html"])
        page = await in_database(
            turns_of,
            self.principal,
            await in_database(Conversation.objects.get, pk=accepted.conversation_id),
        )
        self.assertEqual([answer.message.agent_name for answer in page[0].answers], ["Ann", "Bob"])
        self.assertFalse(page[0].answers[0].superseded)
        await socket.disconnect()
