"""Every example of the RAG chat protocol of 2026, below its prefix and, if the setting says so, at /chat."""

from django.test import override_settings

from chat.tests.golden_exchange import FILE, QUESTIONS, VERIFIED, WORDS, GoldenTestCase, golden
from chat.tests.protocols.test_golden_ai_chat import STATUS, failing
from history.models import Conversation, Message

LINES = "application/json-lines"


class Protocol:
    prefix = ""

    def setUp(self):
        super().setUp()
        self.golden = golden("rag_chat_2026")

    async def ask(self, body=None, path="/chat", **options):
        return await self.post(self.prefix + path, body or self.golden["request"], **options)

    async def stream(self, body=None, path="/chat/stream", **options):
        return await self.lines(self.prefix + path, body or self.golden["request"], LINES, **options)

    async def test_the_documented_request_is_answered_unstreamed_as_documented(self):
        response = await self.ask()
        answer = response.json()
        self.assertEqual((response.status_code, response.headers["Content-Type"]), (200, "application/json"))
        self.assertEqual(answer.pop("message")["content"], answer["output_text"])
        self.like(self.golden["answer"], answer)
        self.assertEqual(set(answer), set(self.golden["answer"]))
        self.assertIn(f"[{FILE}#page=91]", answer["output_text"])

    async def test_the_documented_request_is_streamed_as_documented(self):
        chunks = await self.stream()
        for example, actual in zip(self.golden["chunks"], chunks, strict=False):
            self.like(example, actual)
            self.assertEqual(set(actual), set(example))
        self.assertEqual(chunks[1:3], self.golden["chunks"][1:])
        self.assertEqual([chunk["delta"] for chunk in chunks[1:-1]], list(WORDS))
        self.assertEqual(chunks[-1]["context"], {"verification": [VERIFIED]})

    async def test_the_documented_overrides_are_accepted(self):
        answer = (
            await self.ask(self.golden["request"] | {"context": {"overrides": self.golden["overrides"]}})
        ).json()
        self.assertFalse(answer["context"]["thoughts"][1]["props"]["has_vector"])
        self.assertNotIn(
            "Overrides without effect", [step["title"] for step in answer["context"]["thoughts"]]
        )

    async def test_the_front_ends_request_is_answered_and_continues(self):
        first, *_ = await self.stream(self.golden["front_end_request"])
        said = [
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "What is in the standard plan?"},
        ]
        body = self.golden["front_end_request"] | {"session_state": first["session_state"]}
        body["messages"] = body["messages"] + said
        again, *rest = await self.stream(body)
        self.assertEqual(again["session_state"], first["session_state"])
        # These were already suggested after the first answer.
        self.assertFalse([chunk for chunk in rest if "followup_questions" in chunk.get("context", {})])
        self.assertEqual(await Conversation.objects.acount(), 1)
        self.assertEqual(await Message.objects.acount(), 4)

    async def test_citable_documents_are_listed_for_links(self):
        first, *_ = await self.stream()
        points = first["context"]["data_points"]
        self.assertEqual(points["citations"], [text.partition(": ")[0] for text in points["text"]])

    async def test_follow_up_questions_come_in_a_context_of_their_own(self):
        body = self.golden["request"] | {"context": {"overrides": {"suggest_followup_questions": True}}}
        *_, last = await self.stream(body)
        self.assertEqual(last["type"], "response.context")
        self.assertEqual(last["context"], {"followup_questions": list(QUESTIONS)})
        self.assertEqual((await self.ask(body)).json()["context"]["followup_questions"], list(QUESTIONS))

    async def test_errors_are_as_documented(self):
        for name, error in self.golden["errors"].items():
            with self.subTest(name), self.assertLogs(level="WARNING"):
                response = await self.ask(model=failing(name))
                self.assertEqual((response.status_code, response.json()), (STATUS[name], error))
                chunks = await self.stream(model=failing(name, ["Half"]))
                self.assertEqual((chunks[-2]["delta"], chunks[-1]), ("Half", error))

    async def test_invalid_members_are_refused_by_name(self):
        for path in ("/chat", "/chat/stream", "/ask", "/ask/stream"):
            for change, member in (
                ({"messages": []}, "messages"),
                ({"session_state": 7}, "session_state"),
                ({"context": {"overrides": {"vector_fields": "all"}}}, "context.overrides.vector_fields"),
            ):
                response = await self.ask(self.golden["request"] | change, path)
                self.assertEqual((response.status_code, set(response.json())), (400, {"error"}))
                self.assertIn(f"“{member}”", response.json()["error"])
        self.assertEqual((await self.ask(Authorization="Bearer wrong")).status_code, 401)

    async def test_single_turns_and_trailing_slashes_are_accepted(self):
        for path in ("/ask", "/ask/", "/chat/"):
            self.assertIn("output_text", (await self.ask(path=path)).json())
        for path in ("/ask/stream", "/chat//stream", "/chat/stream/"):
            self.assertEqual((await self.stream(path=path))[1]["type"], "response.output_text.delta")


class PrefixTests(Protocol, GoldenTestCase):
    prefix = "/2026"

    async def test_without_the_prefix_the_older_protocol_is_used(self):
        chunks = await self.lines("/chat/stream", self.golden["request"], LINES)
        self.assertNotIn("type", chunks[0])


@override_settings(RAG_CHAT_VERSION="2026")
class SettingTests(Protocol, GoldenTestCase):
    async def test_other_protocols_at_these_urls_are_unaffected(self):
        body = {"messages": self.golden["request"]["messages"]}
        chunks = await self.lines("/chat/stream", body | {"sessionState": None}, "application/jsonl")
        self.assertIn("delta", chunks[0])
        self.assertIn("choices", (await self.post("/chat", body | {"stream": False})).json())

    async def test_a_request_without_a_session_gets_it_under_both_names(self):
        first, *_ = await self.stream({"messages": self.golden["request"]["messages"]})
        self.assertEqual(first["session_state"], first["sessionState"])
