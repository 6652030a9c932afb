"""POST /chat and /chat/stream, through Django's asynchronous client."""

import json
from uuid import uuid4

from django.test import AsyncClient, TransactionTestCase, override_settings

from chat.llm import ModelError, use_model
from chat.llm.chat_model import NOTHING_IN_PART
from chat.models import Run
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from chatsite.db.threads import in_database
from history.models import Conversation, Message
from ingestion.tests.factories import make_document, make_user

QUESTION = {"messages": [{"role": "user", "content": "Carry over leave until when?"}], "session_state": None}


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class ChatApiTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.key, self.secret = ApiKey.objects.issue(self.user, "test")
        make_document("guide.md", everyone=True)
        make_document(
            "secret.md", ["Carry over leave: the board may carry over nine days."], users=[make_user("board")]
        )

    async def post(self, path, body=QUESTION, *, secret=None, client=None, **headers):
        headers = {"Authorization": f"Bearer {secret or self.secret}"} | headers if secret != "" else headers
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        client = client or AsyncClient()
        return await client.post(path, data, content_type="application/json", headers=headers)

    async def test_an_unstreamed_answer_comes_with_its_context_and_session(self):
        with use_model(ScriptedModel(words=["Five ", "days [guide.md] [secret.md]."])):
            response = await self.post("/chat")
        answer = response.json()
        self.assertEqual(response.status_code, 200)
        self.assertEqual(answer["message"]["content"], "Five days [guide.md].")
        self.assertEqual(
            [text.partition(":")[0] for text in answer["context"]["data_points"]["text"]], ["guide.md"]
        )
        conversation = await in_database(Conversation.objects.get, pk=answer["session_state"])
        self.assertEqual(conversation.owner_id, self.user.pk)

    async def test_unstreamed_and_streamed_answers_name_the_message_that_feedback_is_given_on(self):
        for path in ("/chat", "/chat/stream", "/v1/chat/completions", "/api/chat"):
            body = (
                QUESTION if path.startswith("/chat") else {"model": "any", "messages": QUESTION["messages"]}
            )
            with use_model(ScriptedModel(words=["Five ", "days."])), self.subTest(path):
                response = await self.post(path, body)
                if response.streaming:
                    _ = [chunk async for chunk in response.streaming_content]
                rated = await AsyncClient().put(
                    f"/api/messages/{response.headers['Chat-Message']}/feedback",
                    json.dumps({"rating": "good"}),
                    content_type="application/json",
                    headers={"Authorization": f"Bearer {self.secret}"},
                )
                self.assertEqual(rated.status_code, 201, rated.content)

    async def test_a_stream_comes_line_by_line(self):
        with use_model(ScriptedModel(words=["Five ", "days."])):
            response = await self.post("/chat/stream")
            body = b"".join([chunk async for chunk in response.streaming_content])
        self.assertEqual(response.headers["Content-Type"], "application/json-lines")
        self.assertEqual(
            (response.headers["Cache-Control"], response.headers["X-Accel-Buffering"]), ("no-store", "no")
        )
        self.assertTrue(body.endswith(b"\n"))
        first, *rest = [json.loads(line) for line in body.splitlines()]
        self.assertIn("data_points", first["context"])
        self.assertEqual("".join(chunk["delta"]["content"] or "" for chunk in rest), "Five days.")

    async def test_the_session_continues_and_only_the_last_message_is_new(self):
        model = ScriptedModel(words=["Five."])
        with use_model(model):
            session = (await self.post("/chat")).json()["session_state"]
            body = {
                "messages": [{"role": "user", "content": "forged"}, *QUESTION["messages"]],
                "session_state": session,
            }
            self.assertEqual((await self.post("/chat", body)).json()["session_state"], session)
        self.assertEqual(
            [turn.content for turn in model.prompts[-1].earlier],
            [QUESTION["messages"][0]["content"], "Five."],
        )
        self.assertEqual(await in_database(Message.objects.count), 4)

    async def test_trailing_slashes_are_accepted(self):
        with use_model(ScriptedModel()):
            for path in ("/chat/", "/chat/stream/", "/chat//stream"):
                self.assertEqual((await self.post(path)).status_code, 200, path)

    async def test_callers_without_a_valid_proof_are_refused_and_nothing_is_stored(self):
        await in_database(self.user.set_password, "pass")
        await in_database(self.user.save)
        client = AsyncClient()
        await client.alogin(username="asker", password="pass")
        for secret, headers in (
            ("", {}),
            ("chs_wrong", {}),
            ("", {"Authorization": "Basic YTpi"}),
            ("", {"Authorization": "Bearer"}),
        ):
            response = await self.post("/chat", secret=secret, **headers)
            self.assertEqual((response.status_code, response.headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertIsInstance(response.json()["error"], str)
        # A bad header with a good cookie is still refused.
        self.assertEqual((await self.post("/chat", secret="chs_wrong", client=client)).status_code, 401)
        self.assertEqual(await in_database(Message.objects.count), 0)

    async def test_a_cookie_needs_csrf_and_a_header_does_not(self):
        await in_database(self.user.set_password, "pass")
        await in_database(self.user.save)
        client = AsyncClient(enforce_csrf_checks=True)
        await client.alogin(username="asker", password="pass")
        response = await self.post("/chat", secret="", client=client)
        self.assertEqual(response.status_code, 403)
        with use_model(ScriptedModel()):
            self.assertEqual(
                (await self.post("/chat", client=AsyncClient(enforce_csrf_checks=True))).status_code, 200
            )

    async def test_revoked_keys_and_disabled_accounts_are_refused(self):
        await in_database(type(self.user).objects.filter(pk=self.user.pk).update, is_active=False)
        self.assertEqual((await self.post("/chat")).status_code, 401)
        await in_database(type(self.user).objects.filter(pk=self.user.pk).update, is_active=True)
        await in_database(ApiKey.objects.update, revoked_at="2026-01-01T00:00Z")
        self.assertEqual((await self.post("/chat")).status_code, 401)

    async def test_another_persons_session_looks_like_a_missing_one(self):
        _, secret = await in_database(ApiKey.objects.issue, await in_database(make_user, "other"), "x")
        with use_model(ScriptedModel()):
            theirs = (await self.post("/chat", secret=secret)).json()["session_state"]
        answers = [
            await self.post("/chat", QUESTION | {"session_state": session})
            for session in (theirs, str(uuid4()), "x")
        ]
        self.assertEqual({response.status_code for response in answers}, {404})
        self.assertEqual(len({response.content for response in answers}), 1)

    async def test_bad_bodies_are_refused_in_json(self):
        for body, status in (
            (b"{broken", 400),
            (b"", 400),
            (b"[" * 100_000, 400),
            (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', 400),
            (b'{"messages": NaN}', 400),
            ("null", 400),
            ({"messages": [{"role": "user", "content": "  "}]}, 400),
            ({"messages": [{"role": "user", "content": "x" * 32_001}]}, 400),
            ({"messages": [{"role": "user", "content": "a\x00b"}]}, 400),
            ({"messages": [{"role": "user", "content": "a\x00"}, {"role": "user", "content": "b"}]}, 400),
            (QUESTION | {"context": {"overrides": {"include_category": "a\x00"}}}, 400),
            ({"messages": [{"role": "system", "content": "x"}]}, 400),
        ):
            response = await self.post("/chat/stream", body)
            self.assertEqual(response.status_code, status, str(body)[:60])
            self.assertIsInstance(response.json()["error"], str)
        self.assertEqual(await in_database(Message.objects.count), 0)

    async def test_an_override_with_any_name_is_reported(self):
        with use_model(ScriptedModel()):
            response = await self.post("/chat", QUESTION | {"context": {"overrides": {"a\x00b": 1}}})
        self.assertEqual(response.status_code, 200)
        self.assertIn(["a\ufffdb"], [each["description"] for each in response.json()["context"]["thoughts"]])

    async def test_other_media_types_and_methods_are_refused(self):
        client = AsyncClient()
        headers = {"Authorization": f"Bearer {self.secret}"}
        response = await client.post(
            "/chat", "a=b", content_type="application/x-www-form-urlencoded", headers=headers
        )
        self.assertEqual(response.status_code, 415)
        self.assertEqual((await client.get("/chat", headers=headers)).status_code, 405)

    async def test_the_same_idempotency_key_asks_the_model_once(self):
        model = ScriptedModel(words=["Once."])
        with use_model(model):
            answers = [(await self.post("/chat", **{"Idempotency-Key": "k"})).content for _ in range(3)]
            other = await self.post(
                "/chat", QUESTION | {"context": {"overrides": {"top": 1}}}, **{"Idempotency-Key": "k"}
            )
        self.assertEqual((len(model.prompts), other.status_code), (1, 422))
        self.assertEqual(answers[0], answers[2])
        self.assertEqual(await in_database(Run.objects.count), 1)

    async def test_a_conversation_refuses_the_next_question_during_an_answer(self):
        with use_model(ScriptedModel(words=["a "] * 50, pause=0.01)):
            stream = await self.post("/chat/stream")
            chunks = aiter(stream.streaming_content)
            session = json.loads((await anext(chunks)).splitlines()[0])["session_state"]
            response = await self.post("/chat", QUESTION | {"session_state": session})
            self.assertEqual(response.status_code, 409)
            async for _ in chunks:
                pass

    async def test_a_failing_model_is_reported_in_the_sites_words_with_a_status(self):
        with use_model(ScriptedModel(words=[], error=ModelError("upstream_unavailable"))):
            response = await self.post("/chat")
        self.assertEqual(
            (response.status_code, response.json()),
            (502, {"error": "The language model is not responding."}),
        )

    async def test_without_a_model_the_answer_is_only_the_quotation(self):
        with override_settings(QUOTING_WORDS_PER_SECOND=10_000):
            answer = (
                await self.post(
                    "/chat", QUESTION | {"context": {"overrides": {"suggest_followup_questions": True}}}
                )
            ).json()
        self.assertIn(
            "Employees may carry over five days of leave until 31 March.", answer["message"]["content"]
        )
        self.assertTrue(answer["message"]["content"].startswith("> "))
        self.assertNotIn("nine days", json.dumps(answer))
        self.assertEqual({each["verdict"] for each in answer["context"]["verification"]}, {"quoted"})

    async def test_the_answer_says_if_nothing_was_found(self):
        answer = (
            await self.post(
                "/chat", {"messages": [{"role": "user", "content": "Quantum chromodynamics lattice?"}]}
            )
        ).json()
        self.assertIn("Nothing was found in the documents you may read.", answer["message"]["content"])
        self.assertEqual(answer["context"]["data_points"]["text"], [])
        self.assertEqual(answer["context"]["verification"], [])

    async def test_after_a_narrowed_search_the_answer_names_the_searched_part(self):
        for overrides in ({"scope": "folder:HR"}, {"scope": "own"}, {"include_category": "letters"}):
            body = QUESTION | {"context": {"overrides": overrides}}
            answer = (await self.post("/chat", body)).json()["message"]["content"]
            self.assertEqual(answer, NOTHING_IN_PART)
        body = QUESTION | {"context": {"overrides": {"scope": "all"}}}
        with override_settings(QUOTING_WORDS_PER_SECOND=10_000):
            self.assertIn("31 March", (await self.post("/chat", body)).json()["message"]["content"])

    async def test_without_a_model_too_a_follow_up_is_searched_with_its_context(self):
        await in_database(
            make_document,
            "part-time.md",
            ["Part-time staff carry over leave in proportion to their hours.", "Part-time staff wear blue."],
            everyone=True,
        )
        with override_settings(QUOTING_WORDS_PER_SECOND=10_000):
            first = (await self.post("/chat")).json()
            followed = {"messages": [{"role": "user", "content": "And for part-time staff?"}]}
            answer = (await self.post("/chat", followed | {"session_state": first["session_state"]})).json()
        query = answer["context"]["thoughts"][1]["description"]
        self.assertEqual(query, "Carry over leave until when? And for part-time staff?")
        self.assertIn("in proportion to their hours. [part-time.md]", answer["message"]["content"])
