import json
from uuid import UUID

from django.test import SimpleTestCase

from chat.events import (
    ContextReady,
    Failed,
    Finished,
    FollowUps,
    MessageDone,
    RunResult,
    Started,
    TextDelta,
    Thought,
)
from chat.protocols.framing import json_lines
from chat.protocols.rag_chat import RagChat
from chat.requests import InvalidRequest
from chat.tests.sources import source

SESSION = "6f1c9a52-4f9a-4a53-8b7e-0d4ec47f1a11"
EXCHANGE = [
    Started("r", SESSION, "q", "a", "2026-01-01T00:00:00.000Z"),
    ContextReady(
        (source(label="Benefit_Options.pdf#page=3", content="The plans\n also cover: care", category="hr"),),
        (
            Thought("Original user query", "What is covered?"),
            Thought(
                "Generated search query", "covered", {"has_vector": True, "use_semantic_captions": False}
            ),
            Thought("Prompt", ["{'role': 'system', 'content': 'Answer.'}"], {"model": "m"}),
        ),
    ),
    TextDelta("The"),
    TextDelta(" plan [Benefit_Options.pdf#page=3]."),
    MessageDone("stop", ("Benefit_Options.pdf#page=3",)),
    FollowUps(("And dental?",)),
    Finished("complete"),
]


def body(**members):
    return {"messages": [{"content": "What is covered?", "role": "user"}]} | members


def folded(events):
    result = RunResult()
    for event in events:
        result.add(event)
    return result


class ParsingTests(SimpleTestCase):
    def refused(self, value, member):
        with self.assertRaises(InvalidRequest) as caught:
            RagChat().parse(value)
        self.assertIn(member, caught.exception.message)
        return caught.exception

    def test_the_documented_request_is_understood(self):
        request = RagChat().parse(body(context={}, session_state=None))
        self.assertEqual(request.question, "What is covered?")
        self.assertIsNone(request.conversation_id)
        self.assertFalse(request.options.followups)

    def test_the_documented_overrides_are_understood(self):
        overrides = {
            "top": 3,
            "retrieval_mode": "text",
            "semantic_ranker": False,
            "semantic_captions": False,
            "suggest_followup_questions": True,
            "use_oid_security_filter": False,
            "use_groups_security_filter": False,
            "vector_fields": ["embedding"],
            "use_gpt4v": False,
            "gpt4v_input": "textAndImages",
            "temperature": 0,
        }
        options = RagChat().parse(body(context={"overrides": overrides})).options
        self.assertEqual((options.top, options.retrieval_mode, options.followups), (3, "text", True))
        self.assertEqual((options.temperature, options.unknown), (0.0, ()))

    def test_an_unknown_override_is_reported_without_an_error(self):
        self.assertEqual(
            RagChat().parse(body(context={"overrides": {"speed": 9}})).options.unknown, ("speed",)
        )

    def test_earlier_messages_and_the_session_are_kept(self):
        messages = [
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": "Two"},
            {"role": "user", "content": "Three"},
        ]
        request = RagChat().parse({"messages": messages, "session_state": SESSION})
        self.assertEqual(request.conversation_id, UUID(SESSION))
        self.assertEqual([turn.content for turn in request.earlier], ["One", "Two"])

    def test_invalid_members_are_named(self):
        self.refused([], "object")
        self.refused({}, "messages")
        self.refused({"messages": []}, "messages")
        self.refused({"messages": "hello"}, "messages")
        self.refused({"messages": ["hello"]}, "messages[0]")
        self.refused({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role")
        self.refused({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role")
        self.refused({"messages": [{"role": "user", "content": 7}]}, "messages[0].content")
        self.refused({"messages": [{"role": "assistant", "content": "x"}]}, "last message")
        self.refused(body(session_state=7), "session_state")
        self.refused(body(context=[]), "context")
        self.refused(body(context={"overrides": 1}), "context.overrides")
        for name, value in {
            "top": 0,
            "temperature": 2.5,
            "retrieval_mode": "semantic",
            "suggest_followup_questions": "yes",
            "vector_fields": ["x"],
            "semantic_ranker": 1,
            "minimum_search_score": -1,
        }.items():
            self.refused(body(context={"overrides": {name: value}}), f"context.overrides.{name}")
        self.refused(body(context={"overrides": {"top": True}}), "top")
        self.refused(body(context={"overrides": {"use_gpt4v": 1}}), "use_gpt4v")

    def test_an_invalid_session_id_is_not_found(self):
        self.assertEqual(self.refused(body(session_state="mine"), "conversation").status, 404)


class WholeTests(SimpleTestCase):
    def test_the_answer_has_the_documented_members(self):
        status, answer = RagChat().full_response(folded(EXCHANGE))
        self.assertEqual(status, 200)
        self.assertEqual(set(answer), {"message", "output_text", "context", "session_state"})
        self.assertEqual(
            answer["message"],
            {
                "content": "The plan [Benefit_Options.pdf#page=3].",
                "role": "assistant",
                "function_call": None,
                "tool_calls": None,
            },
        )
        context = answer["context"]
        self.assertEqual(answer["output_text"], answer["message"]["content"])
        self.assertEqual(
            context["data_points"],
            {
                "text": ["Benefit_Options.pdf#page=3: The plans also cover: care"],
                "citations": ["Benefit_Options.pdf#page=3"],
            },
        )
        self.assertEqual(context["followup_questions"], ["And dental?"])
        self.assertEqual(
            [step["title"] for step in context["thoughts"]],
            ["Original user query", "Generated search query", "Results", "Prompt"],
        )
        self.assertIsNone(context["thoughts"][0]["props"])
        result = context["thoughts"][2]["description"][0]
        for member in (
            "id",
            "content",
            "embedding",
            "imageEmbedding",
            "category",
            "sourcepage",
            "sourcefile",
            "oids",
            "groups",
            "captions",
        ):
            self.assertIn(member, result)
        self.assertEqual((result["oids"], result["groups"], result["category"]), ([], [], "hr"))
        self.assertIn("Benefit_Options.pdf#page=3: The plans", context["thoughts"][3]["description"][-1])
        self.assertEqual(answer["session_state"], SESSION)

    def test_a_request_without_a_session_gets_it_under_both_spellings(self):
        answer = RagChat(decided=False).full_response(folded(EXCHANGE))[1]
        self.assertEqual((answer["session_state"], answer["sessionState"]), (SESSION, SESSION))

    def test_a_failure_has_the_documented_error(self):
        self.assertEqual(
            RagChat().full_response(folded([*EXCHANGE[:2], Failed("failed", "internal")])),
            (
                500,
                {
                    "error": "The app encountered an error processing your request.\n"
                    "If you are an administrator of the app, view the full error in the logs."
                },
            ),
        )
        self.assertEqual(
            RagChat().full_response(folded([Failed("blocked", "content_filter")])),
            (400, {"error": "Your message contains content that was flagged by the OpenAI content filter."}),
        )


class StreamTests(SimpleTestCase):
    def chunks(self, events):
        encoder = RagChat().encoder()
        return [chunk for event in events for chunk in encoder.encode(event)]

    def test_the_chunks_are_as_documented(self):
        first, second, third, *_, last = self.chunks(EXCHANGE)
        self.assertEqual(first["delta"], {"role": "assistant"})
        self.assertEqual(set(first), {"delta", "context", "session_state"})
        self.assertEqual(
            second,
            {"delta": {"content": None, "function_call": None, "role": "assistant", "tool_calls": None}},
        )
        self.assertEqual(
            third, {"delta": {"content": "The", "function_call": None, "role": None, "tool_calls": None}}
        )
        self.assertEqual(last["context"], {"followup_questions": ["And dental?"]})

    def test_an_error_after_the_first_byte_is_one_more_line(self):
        chunk = self.chunks([*EXCHANGE[:3], Failed("interrupted", "upstream_timeout")])[-1]
        self.assertEqual(chunk, {"error": "The language model took too long to answer."})

    def test_a_line_ends_with_its_only_line_feed(self):
        line = json_lines({"delta": {"content": "a\nb – ü"}})
        self.assertEqual(line.count(b"\n"), 1)
        self.assertTrue(line.endswith(b"\n"))
        self.assertEqual(json.loads(line)["delta"]["content"], "a\nb – ü")
