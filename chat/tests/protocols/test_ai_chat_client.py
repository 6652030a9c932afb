"""The published client of the AI Chat Protocol: its API key, its address and its retries."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, override_settings
from django.utils import timezone

from chat.llm import ModelError
from chat.models import Run
from chat.tests.golden_exchange import GoldenTestCase
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import User
from history.models import Conversation, Message

ASKED = {"messages": [{"role": "user", "content": "What is included?"}]}
PATHS = ("/chat", "/ask", "/api/chat", "/api/minimal/chat", "/v1/chat/completions", "/chat-history")


def failing():
    return ScriptedModel(words=(), error=ModelError("upstream_unavailable"))


@pytest.mark.slow
class Keys(GoldenTestCase):
    async def ask(self, path="/chat", **headers):
        body = {} if path == "/chat-history" else ASKED
        return await AsyncClient().post(
            path, json.dumps(body), content_type="application/json", headers=headers
        )

    async def test_a_key_is_read_from_each_header_that_clients_send(self):
        for header, value in (
            ("Authorization", f"Bearer {self.secret}"),
            ("api-key", self.secret),
            ("X-Api-Key", f" {self.secret} "),
        ):
            for path in PATHS:
                with self.subTest(f"{header} at {path}"):
                    self.assertEqual((await self.ask(path, **{header: value})).status_code // 100, 2)
        self.assertEqual(await Run.objects.exclude(owner=self.user).acount(), 0)

    async def test_a_wrong_key_is_refused_and_never_taken_for_a_guest_or_a_session(self):
        client = AsyncClient()
        await client.aforce_login(self.user)
        for login_required in (True, False):
            with override_settings(LOGIN_REQUIRED=login_required):
                for header in ("api-key", "X-Api-Key", "Authorization"):
                    for value in ("chs_wrong", "", " ", f"Basic {self.secret}"):
                        for path in PATHS:
                            with self.subTest(
                                f"{header}: {value!r} at {path}", login_required=login_required
                            ):
                                answer = await self.ask(path, **{header: value})
                                self.assertEqual(answer.status_code, 401)
                                self.assertIn(header, answer.content.decode())
                                self.assertFalse(answer.cookies)
                    answer = await client.get("/chat-history", headers={header: "chs_wrong"})
                    self.assertEqual(answer.status_code, 401)
        self.assertEqual(await User.objects.filter(guest_until__isnull=False).acount(), 0)

    async def test_the_authorization_header_takes_precedence(self):
        good, wrong = f"Bearer {self.secret}", "chs_wrong"
        self.assertEqual((await self.ask(**{"Authorization": good, "api-key": wrong})).status_code, 200)
        both = {"Authorization": f"Bearer {wrong}", "api-key": self.secret}
        self.assertEqual((await self.ask(**both)).status_code, 401)

    async def test_a_revoked_key_is_refused(self):
        await sync_to_async(lambda: type(self.key).objects.filter(pk=self.key.pk).revoke())()
        self.assertEqual((await self.ask(**{"api-key": self.secret})).status_code, 401)


class TheAddressInItsReadme(GoldenTestCase):
    async def test_it_streams_json_lines_from_the_first_turn(self):
        for accept in ("application/json", "application/jsonl", "application/json, application/jsonl;q=0.5"):
            for path in ("/api/chat/stream", "/api/chat//stream", "/api/chat/stream/"):
                with self.subTest(accept, path=path):
                    lines = await self.lines(path, ASKED, "application/jsonl", Accept=accept)
                    self.assertEqual(lines[0]["delta"]["role"], "assistant")
                    self.assertTrue(lines[0]["sessionState"])

    async def test_the_second_turn_continues_whole_and_streamed(self):
        first = await self.lines("/api/chat/stream", ASKED, "application/jsonl", Accept="application/json")
        second = ASKED | {"sessionState": first[0]["sessionState"]}
        streamed = await self.lines(
            "/api/chat/stream", second, "application/jsonl", Accept="application/json"
        )
        self.assertEqual(streamed[0]["sessionState"], first[0]["sessionState"])
        whole = await self.post("/api/chat", second, Accept="application/json")
        self.assertEqual(whole.json()["sessionState"], first[0]["sessionState"])
        self.assertEqual(whole.json()["message"]["role"], "assistant")

    async def test_the_first_whole_answer_has_the_members_of_both_protocols(self):
        # The request of @microsoft/ai-chat-protocol 1.0.0-beta.20240814.1, before it has a session.
        whole = await self.post("/api/chat", ASKED, Accept="application/json")
        answer, other = whole.json(), (await self.post("/chat", ASKED | {"sessionState": None})).json()
        self.assertEqual(answer["message"], other["message"])
        self.assertLessEqual(other["context"].keys(), answer["context"].keys())
        self.assertNotIn("sessionState", answer)  # the client then sends the whole conversation
        again = ASKED["messages"] + [answer["message"], {"role": "user", "content": "Why?"}]
        whole = await self.post("/api/chat", {"messages": again}, Accept="application/json")
        self.assertEqual(whole.json()["message"]["role"], "assistant")

    async def test_a_failed_whole_answer_has_only_the_error_of_the_chat_ui(self):
        with self.assertLogs(level="WARNING"):
            whole = await self.post("/api/chat", ASKED, model=failing(), Accept="application/json")
        self.assertEqual((whole.status_code, list(whole.json())), (502, ["error"]))

    async def test_a_whole_answer_of_the_chat_ui_alone_has_only_its_own_members(self):
        conversation = await Conversation.objects.acreate(owner=self.user)
        named = ASKED | {"conversationId": str(conversation.pk)}
        for body, accept in ((ASKED, "*/*"), (ASKED, "application/json, */*"), (named, "application/json")):
            with self.subTest(accept=accept):
                whole = await self.post("/api/chat", body, Accept=accept)
                self.assertFalse({"message", "context"} & whole.json().keys())

    async def test_a_chat_ui_is_answered_as_before(self):
        for accept in (
            {"Accept": "text/event-stream"},
            {"Accept": "*/*"},
            {},
            {"Accept": "text/event-stream, */*"},
        ):
            with self.subTest(accept=accept):
                events = await self.events("/api/chat/stream", ASKED, **accept)
                self.assertEqual(json.loads(events[-1])["status"], "completed")
        whole = await self.post("/api/chat", ASKED, Accept="application/json")
        self.assertEqual(whole.json()["contentType"], "markdown")
        for path in ("/api/multi-agent-chat/stream", "/api/minimal/chat/stream"):
            answer = await self.post(path, ASKED, Accept="application/json")
            self.assertEqual(answer.headers["Content-Type"], "text/event-stream")

    async def test_refusals_have_the_form_that_each_client_reads(self):
        for headers, kind in (({"Accept": "application/json"}, str), ({"Accept": "text/event-stream"}, dict)):
            for wrong in ({"Authorization": "Bearer chs_wrong"}, {}):
                body = ASKED if wrong else {"messages": []}
                answer = await self.post("/api/chat/stream", body, **headers, **wrong)
                self.assertEqual(answer.status_code, 401 if wrong else 400)
                self.assertIsInstance(answer.json()["error"], kind)


class Retries(GoldenTestCase):
    """The client sends the same POST four times within seconds, without an idempotency key."""

    async def ask(self, model=None, body=ASKED, path="/chat", **headers):
        return await self.post(path, body, model=model, **headers)

    async def counted(self):
        questions = Message.objects.filter(role="user")
        return await Conversation.objects.acount(), await questions.acount(), await Message.objects.acount()

    async def test_a_question_that_is_repeated_after_502_is_one_question_of_one_conversation(self):
        for _ in range(3):
            self.assertEqual((await self.ask(failing())).status_code, 502)
        answer = await self.ask()
        self.assertEqual(answer.status_code, 200)
        self.assertEqual(await self.counted(), (1, 1, 5))
        conversation = await Conversation.objects.aget()
        self.assertEqual(answer.json()["session_state"], str(conversation.pk))
        follow_up = await self.ask(body=ASKED | {"session_state": str(conversation.pk)})
        self.assertEqual(follow_up.status_code, 200)
        self.assertEqual(await self.counted(), (1, 2, 7))

    async def test_a_repeated_second_question_is_one_question(self):
        session = (await self.ask()).json()["session_state"]
        body = {"messages": [{"role": "user", "content": "And what costs less?"}], "session_state": session}
        for model in (failing(), failing(), None):
            await self.ask(model, body)
        self.assertEqual(await self.counted(), (1, 2, 6))

    async def test_an_answered_question_is_asked_again(self):
        for model in (None, None, ScriptedModel(words=("Half",), error=ModelError("interrupted"))):
            await self.ask(model)
        await self.ask()
        self.assertEqual(await self.counted(), (4, 4, 8))

    async def test_other_questions_keys_and_callers_are_separate(self):
        await self.ask(failing())
        await self.ask(failing(), {"messages": [{"role": "user", "content": "What else?"}]})
        await self.ask(failing(), ASKED | {"context": {"overrides": {"top": 2}}})
        await self.ask(failing(), **{"Idempotency-Key": "a"})
        await self.ask(failing(), **{"Idempotency-Key": "b"})
        self.assertEqual((await self.counted())[0], 5)
        other = await sync_to_async(User.objects.create_user)("another")
        client = AsyncClient()
        await client.aforce_login(other)
        await client.post(
            "/chat",
            json.dumps(ASKED),
            content_type="application/json",
            headers={"Sec-Fetch-Site": "same-origin"},
        )
        self.assertEqual((await self.counted())[0], 6)

    async def test_after_a_while_it_is_a_new_question(self):
        await self.ask(failing())
        await Run.objects.aupdate(created_at=timezone.now() - timedelta(minutes=6))
        await self.ask()
        self.assertEqual((await self.counted())[:2], (2, 2))

    async def test_a_deleted_conversation_does_not_come_back(self):
        await self.ask(failing())
        await Conversation.objects.aupdate(deleted_at=timezone.now())
        await self.ask()
        self.assertEqual((await self.counted())[:2], (2, 2))
