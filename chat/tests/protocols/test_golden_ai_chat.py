"""Every example of the three AI-chat specifications, as an exchange with this site."""

import json

from django.test import SimpleTestCase

from chat.events import Finished, MessageDone, Started, TextDelta, Usage
from chat.llm import ModelError
from chat.protocols import ChatCompletions
from chat.requests import InvalidRequest
from chat.tests.golden_exchange import FILE, QUESTIONS, VERIFIED, WORDS, GoldenTestCase, differences, golden
from chat.tests.scripted_model import ScriptedModel
from history.models import Conversation, Message

FAILURES = {"internal": RuntimeError("a secret detail"), "content_filter": ModelError("content_filter")}
STATUS = {"internal": 500, "content_filter": 400}


def failing(name, words=()):
    return ScriptedModel(words=words, error=FAILURES[name])


class ComparisonTests(SimpleTestCase):
    def test_missing_and_foreign_members_and_other_types_are_detected(self):
        example = {"a": 1, "b": [{"c": None}], "d": {"e": ""}}
        self.assertEqual(differences(example, {"a": 2, "b": [{"c": None}] * 2, "d": {"e": "x"}}), [])
        for unlike in (
            {"b": [{"c": None}], "d": {"e": ""}},
            example | {"z": 1},
            example | {"a": "1"},
            example | {"a": True},
            example | {"b": []},
            example | {"b": [{"c": 1}]},
            example | {"d": {}},
        ):
            self.assertEqual(len(differences(example, unlike)), 1, unlike)


class UsageTests(SimpleTestCase):
    def test_the_chunk_with_the_reason_to_end_counts_the_tokens(self):
        started = Started("r", "c", "q", "a", "2026-01-01T00:00:00.000Z", "m")
        for more, total in (([Usage(7, 2)], 9), ([], 0)):
            encoder = ChatCompletions().encoder()
            events = [started, TextDelta("x"), MessageDone("stop", ()), *more, Finished("complete")]
            *_, last = [chunk for event in events for chunk in encoder.encode(event)]
            self.assertEqual(last["choices"][0]["finish_reason"], "stop")
            self.assertEqual(last["usage"]["total_tokens"], total)

    def test_a_stopped_stream_ends_with_a_reason_and_a_count(self):
        encoder = ChatCompletions().encoder()
        started = Started("r", "c", "q", "a", "2026-01-01T00:00:00.000Z", "m")
        events = [started, TextDelta("x"), Finished("stopped")]
        *_, last = [chunk for event in events for chunk in encoder.encode(event)]
        self.assertEqual(last["choices"][0]["finish_reason"], "stop")
        self.assertEqual(last["usage"]["total_tokens"], 0)

    def test_a_stream_that_is_null_counts_as_not_given(self):
        self.assertFalse(ChatCompletions().streams({"messages": [], "stream": None}))
        for value in (0, "", [], "true"):
            with self.assertRaises(InvalidRequest):
                ChatCompletions().streams({"messages": [], "stream": value})


class SimpleForm:
    """Tests of RAG chat and the AI Chat Protocol, which differ in the session's name and the media type."""

    name = session = media_type = ""
    more: set[str] = set()  # members of a whole answer that the specification lacks

    def setUp(self):
        super().setUp()
        self.golden = golden(self.name)

    async def test_the_documented_request_is_answered_whole_as_documented(self):
        response = await self.post("/chat", self.golden["request"])
        self.assertEqual((response.status_code, response.headers["Content-Type"]), (200, "application/json"))
        self.like(self.golden["answer"], response.json())
        self.assertEqual(set(response.json()), set(self.golden["answer"]) | self.more)

    async def test_the_citation_precedes_the_first_colon_of_a_data_point(self):
        answer = (await self.post("/chat", self.golden["request"])).json()
        labels = [text.partition(": ")[0] for text in answer["context"]["data_points"]["text"]]
        self.assertIn(f"{FILE}#page=91", labels)
        self.assertIn(f"[{FILE}#page=91]", answer["message"]["content"])

    async def test_the_documented_request_is_streamed_as_documented(self):
        first, second, third, *rest, last = await self.lines(
            "/chat/stream", self.golden["request"], self.media_type
        )
        for example, actual in zip(self.golden["chunks"], (first, second, third), strict=True):
            self.like(example, actual)
            self.assertEqual(set(actual), set(example))
        self.assertEqual(second, self.golden["chunks"][1])
        self.assertEqual(third, self.golden["chunks"][2])
        self.assertEqual([chunk["delta"]["content"] for chunk in rest], list(WORDS[1:]))
        self.assertEqual(last["context"], {"verification": [VERIFIED]})

    async def test_the_documented_overrides_are_accepted(self):
        body = self.golden["request"] | {"context": {"overrides": self.golden["overrides"]}}
        answer = (await self.post("/chat", body)).json()
        self.like(self.golden["answer"], answer)
        self.assertFalse(answer["context"]["thoughts"][1]["props"]["has_vector"])
        self.assertNotIn("followup_questions", answer["context"])

    async def test_follow_up_questions_come_in_the_context(self):
        body = self.golden["request"] | {"context": {"overrides": {"suggest_followup_questions": True}}}
        answer = (await self.post("/chat", body)).json()
        example = self.golden["response_context"]["followups"]
        self.like(example, {"followup_questions": answer["context"]["followup_questions"]})
        chunks = await self.lines("/chat/stream", body, self.media_type)
        self.assertEqual(chunks[-1]["context"], {"followup_questions": list(QUESTIONS)})
        self.assertIn(self.session, chunks[-1])

    async def test_errors_before_the_first_byte_are_as_documented(self):
        for name, body in self.golden["errors"].items():
            with self.subTest(name), self.assertLogs(level="WARNING"):
                response = await self.post("/chat", self.golden["request"], model=failing(name))
                self.assertEqual((response.status_code, response.json()), (STATUS[name], body))

    async def test_an_error_after_the_first_byte_is_the_last_chunk(self):
        for name, body in self.golden["errors"].items():
            with self.subTest(name), self.assertLogs(level="WARNING"):
                chunks = await self.lines(
                    "/chat/stream", self.golden["request"], self.media_type, model=failing(name, ["Half"])
                )
                self.assertEqual((chunks[-2]["delta"]["content"], chunks[-1]), ("Half", body))

    async def test_the_session_continues(self):
        session = (await self.post("/chat", self.golden["request"])).json()[self.session]
        body = self.golden["request"] | {self.session: session}
        answer = (await self.post("/chat", body)).json()
        self.assertEqual(answer[self.session], session)
        chunks = await self.lines("/chat/stream", body, self.media_type)
        self.assertEqual(chunks[0][self.session], session)
        self.assertEqual(await Message.objects.acount(), 6)

    async def test_a_session_object_is_returned_unchanged_and_continues(self):
        memory = {"tab": [1, {"scroll": 0.5}], "user": "ü"}
        answer = (await self.post("/chat", self.golden["request"] | {self.session: memory})).json()
        session = answer[self.session]
        self.assertEqual({name: session[name] for name in memory}, memory)
        self.assertEqual(len(session), len(memory) + 1)
        chunks = await self.lines(
            "/chat/stream", self.golden["request"] | {self.session: session}, self.media_type
        )
        self.assertEqual(chunks[0][self.session], session)
        self.assertEqual(await Conversation.objects.acount(), 1)

    async def test_the_conversation_named_in_a_session_object_must_belong_to_the_caller(self):
        session = {"chatsite_conversation": "11111111-1111-4111-8111-111111111111"}
        response = await self.post("/chat", self.golden["request"] | {self.session: session})
        self.assertEqual(response.status_code, 404)

    async def test_what_an_answer_may_cite_is_listed(self):
        points = (await self.post("/chat", self.golden["request"])).json()["context"]["data_points"]
        self.assertEqual(points["citations"], [text.partition(": ")[0] for text in points["text"]])


class RagChatTests(SimpleForm, GoldenTestCase):
    name, session, media_type = "rag_chat", "session_state", "application/json-lines"
    more = {"output_text"}


class AiChatProtocolTests(SimpleForm, GoldenTestCase):
    name, session, media_type = "ai_chat_protocol", "sessionState", "application/jsonl"

    async def test_the_accept_header_alone_selects_the_protocol(self):
        body = {"messages": self.golden["request"]["messages"]}
        response = await self.post("/chat/stream", body, Accept="application/jsonl")
        self.assertEqual(response.headers["Content-Type"], "application/jsonl")
        self.assertEqual(
            set(json.loads(response.body[0].splitlines()[0])), {"delta", "context", "sessionState"}
        )

    async def test_an_ambiguous_request_gets_its_session_under_both_names(self):
        body = {"messages": self.golden["request"]["messages"]}
        answer = (await self.post("/chat", body)).json()
        self.assertEqual(answer["session_state"], answer["sessionState"])
        first, *_ = await self.lines("/chat/stream", body, "application/json-lines")
        self.assertEqual(first["session_state"], first["sessionState"])


class AskTests(GoldenTestCase):
    async def test_single_turns_are_answered_alone(self):
        body = golden("rag_chat")["request"]
        said = [{"role": "user", "content": "Before?"}, {"role": "assistant", "content": "Yes."}]
        body["messages"] = said + body["messages"]
        model = ScriptedModel(words=WORDS)
        answer = (await self.post("/ask", body, model=model)).json()
        self.like(golden("rag_chat")["answer"], answer)
        await self.lines("/ask/stream", body, "application/json-lines", model=model)
        self.assertEqual([list(prompt.earlier) for prompt in model.prompts], [[], []])


class ChatCompletionsTests(GoldenTestCase):
    def setUp(self):
        super().setUp()
        self.golden = golden("chat_completions")
        self.streaming = self.golden["request"] | {"stream": True}

    async def test_the_documented_request_is_answered_whole_as_documented(self):
        answer = (await self.post("/chat", self.golden["request"])).json()
        choice = answer["choices"][0]
        told = {name: choice["message"].pop(name) for name in ("context", "session_state")}
        self.like(self.golden["answer"], answer)
        self.assertEqual(told, {name: choice[name] for name in told})
        self.assertEqual(told["context"]["verification"], [VERIFIED])
        self.assertEqual((answer["object"], choice["finish_reason"]), ("chat.completion", "stop"))

    async def test_the_documented_request_is_streamed_as_documented(self):
        chunks = await self.lines("/chat", self.streaming, "application/json-lines")
        delta = chunks[0]["choices"][0]["delta"]
        told = {name: delta.pop(name) for name in ("context", "session_state")}
        self.assertEqual(told, {name: chunks[0]["choices"][0][name] for name in told})
        # The example's first chunk lacks members that the specification requires of every chunk.
        first = self.golden["chunks"][1] | self.golden["chunks"][0]
        first["choices"][0]["content_filter_results"] = {}
        for example, actual in zip([first, *self.golden["chunks"][1:]], chunks, strict=False):
            self.like(example, actual)
        contents = [chunk["choices"][0]["delta"]["content"] for chunk in chunks[2:]]
        self.assertEqual(contents, [*WORDS, None])
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "stop")
        self.assertEqual(chunks[-1]["choices"][0]["context"], {"verification": [VERIFIED]})
        self.like(self.golden["answer"]["usage"], chunks[-1]["usage"])

    async def test_nested_and_flat_overrides_are_accepted(self):
        for told in (
            {"overrides": self.golden["overrides"]},
            self.golden["overrides"] | {"approach": "rrr"},
        ):
            answer = (await self.post("/chat", self.golden["request"] | {"context": told})).json()
            query = answer["choices"][0]["context"]["thoughts"][1]
            self.assertEqual((query["props"]["top"], query["props"]["has_vector"]), (3, False))
        response = await self.post("/chat", self.golden["request"] | {"context": {"top": 0}})
        self.assertEqual(response.status_code, 400)
        self.assertIn("“context.top”", response.json()["error"])

    async def test_errors_are_as_documented(self):
        for name, body in self.golden["errors"].items():
            with self.subTest(name), self.assertLogs(level="WARNING"):
                response = await self.post("/chat", self.golden["request"], model=failing(name))
                more = {"message": body["error"], "statusCode": STATUS[name]}
                self.assertEqual((response.status_code, response.json()), (STATUS[name], body | more))
                chunks = await self.lines(
                    "/chat", self.streaming, "application/json-lines", model=failing(name, ["Half"])
                )
                self.assertEqual(chunks[-1], body | more)

    async def test_follow_up_questions_and_the_single_turn(self):
        body = self.streaming | {"context": {"overrides": {"suggest_followup_questions": True}}}
        chunks = await self.lines("/ask", body, "application/json-lines")
        last = chunks[-1]["choices"][0]
        self.assertEqual(last["context"], {"followup_questions": list(QUESTIONS)})
        self.assertEqual(last["delta"]["context"], last["context"])
