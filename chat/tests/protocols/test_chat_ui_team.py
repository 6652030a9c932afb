"""The Chat UI's multi-agent mode, and a team's answer in the other protocols."""

from django.test import SimpleTestCase

from chat.events import (
    ContextReady,
    Failed,
    Finished,
    MessageDone,
    MessageStarted,
    Rechecked,
    RunResult,
    Started,
    TextDelta,
)
from chat.protocols import (
    ChatUi,
    OpenAI,
    RagChat,
    TeamChatUi,
    TeamChatUiMinimal,
)
from chat.protocols.chat_ui import (
    ChatUiEncoder,
    ChatUiMessages,
    ChatUiWithMessage,
    MinimalEncoder,
    TeamChatUiMessages,
)
from chat.statements import Statement
from chat.tests.sources import source

LINK = "[a.md#x](/content/00000000-0000-0000-0000-000000000001/a.md)"
CONTEXT = ContextReady((source(label="a.md#x"),), ())
TEAM = [
    Started("r", "c", "q", "m1", "2026-01-01T00:00:00.000Z", "model"),
    MessageStarted("m1", "Research", "2026-01-01T00:00:00.000Z"),
    CONTEXT,
    TextDelta("Facts "),
    TextDelta("[a.md#x]."),
    MessageDone("stop", ("a.md#x",)),
    MessageStarted("m2", "Code", "2026-01-01T00:00:05.000Z"),
    CONTEXT,
    TextDelta("So."),
    MessageDone("stop", ()),
    Finished("complete"),
]

FAILED = Failed("interrupted", "upstream_timeout")


def folded(events):
    result = RunResult()
    for event in events:
        result.add(event)
    return result


class TeamTests(SimpleTestCase):
    def test_a_whole_answer_is_an_array_with_a_message_of_each_agent(self):
        status, messages = TeamChatUi().full_response(folded(TEAM))
        self.assertEqual(status, 200)
        first, second = messages
        self.assertEqual(
            (first["messageId"], first["agentName"], first["content"]), ("m1", "Research", f"Facts {LINK}.")
        )
        self.assertEqual((second["messageId"], second["agentName"], second["content"]), ("m2", "Code", "So."))
        self.assertEqual([message["status"] for message in messages], ["completed", "completed"])
        self.assertEqual((len(first["sources"]), second["sources"]), (1, []))
        self.assertEqual(second["createdAt"], "2026-01-01T00:00:05.000Z")

    def test_streamed_each_message_grows_and_completes_under_its_own_id(self):
        encoder = ChatUiEncoder(iter(range(100)).__next__, team=True)
        chunks = [chunk for event in TEAM for chunk in encoder.encode(event)]
        self.assertEqual([chunk["messageId"] for chunk in chunks], ["m1"] * 4 + ["m2"] * 3)
        self.assertEqual(
            [chunk["status"] for chunk in chunks if chunk["messageId"] == "m1"],
            ["processing"] * 3 + ["completed"],
        )
        self.assertEqual(chunks[-1]["content"], "So.")

    def test_a_failure_fails_the_message_that_was_being_written(self):
        events = [*TEAM[:-2], Failed("interrupted", "upstream_timeout")]
        first, second = TeamChatUi().full_response(folded(events))[1]
        self.assertEqual((first["status"], second["status"]), ("completed", "failed"))
        self.assertEqual(second["error"]["code"], "upstream_timeout")

    def test_without_agents_the_only_message_has_its_sources_and_links(self):
        events = [TEAM[0], *TEAM[2:6], Finished("complete")]
        encoder = TeamChatUi().encoder()
        streamed = [chunk for event in events for chunk in encoder.encode(event)]
        (whole,) = TeamChatUi().full_response(folded(events))[1]
        (listed,) = TeamChatUiMessages().full_response(folded(events))[1]["messages"]
        for message in (streamed[-1], whole, listed):
            self.assertEqual((message["content"], len(message["sources"])), (f"Facts {LINK}.", 1))
            self.assertNotIn("agentName", message)

    def test_a_failure_between_two_messages_is_the_error_of_the_first(self):
        result = folded([*TEAM[:6], FAILED])
        (listed,) = TeamChatUi().full_response(result)[1]
        (team,) = TeamChatUiMessages().full_response(result)[1]["messages"]
        (single,) = ChatUiMessages().full_response(result)[1]["messages"]
        status, whole = ChatUi().full_response(result)
        self.assertEqual(status, 200)
        for message in (listed, team, single, whole):
            self.assertEqual((message["messageId"], message["content"]), ("m1", f"Facts {LINK}."))
            self.assertEqual((message["status"], message["error"]["code"]), ("failed", "upstream_timeout"))

    def test_a_failure_between_two_messages_is_a_bare_error_in_minimal(self):
        events = [*TEAM[:6], FAILED]
        first, error = TeamChatUiMinimal().full_response(folded(events))[1]
        self.assertEqual((first["AuthorName"], first["Metadata"]["Id"]), ("Research", "m1"))
        self.assertEqual((list(error), error["error"]["code"]), (["error"], "upstream_timeout"))
        encoder = MinimalEncoder()
        self.assertEqual([chunk for each in events for chunk in encoder.encode(each)], [first, error])
        begun = TeamChatUiMinimal().full_response(folded([*TEAM[:7], FAILED]))[1]
        self.assertEqual([message["AuthorName"] for message in begun], ["Research", "Code"])

    def test_a_stream_repeats_the_last_state_with_the_second_verification(self):
        checked = (Statement(0, 3, ("a.md#x",), "supported"),)
        encoder = TeamChatUi().encoder()
        chunks = [chunk for event in TEAM[:-1] for chunk in encoder.encode(event)]
        self.assertNotIn("verification", chunks[-1])
        (again,) = encoder.encode(Rechecked(checked))
        self.assertEqual(again["verification"][0]["verdict"], "supported")
        self.assertEqual(again, chunks[-1] | {"verification": again["verification"]})
        self.assertEqual(encoder.encode(TEAM[-1]), [])

    def test_a_failed_answer_keeps_the_members_of_the_ai_chat_protocol(self):
        status, answer = ChatUiWithMessage().full_response(
            folded([TEAM[0], CONTEXT, TextDelta("Half"), FAILED])
        )
        self.assertEqual((status, answer["status"], answer["content"]), (200, "failed", "Half"))
        self.assertEqual((answer["message"]["content"], answer["message"]["role"]), ("Half", "assistant"))
        self.assertEqual(answer["context"]["data_points"]["citations"], ["a.md#x"])
        bare = ChatUiWithMessage().full_response(folded([TEAM[0], TextDelta("Half"), FAILED]))[1]
        self.assertEqual((bare["message"]["content"], "context" in bare), ("Half", False))

    def test_minimal_names_the_author_of_each_message(self):
        messages = TeamChatUiMinimal().full_response(folded(TEAM))[1]
        self.assertEqual([message["AuthorName"] for message in messages], ["Research", "Code"])
        self.assertEqual([message["Items"][0]["Text"] for message in messages], [f"Facts {LINK}.", "So."])

    def test_a_request_asks_for_the_team(self):
        body = {"messages": [{"role": "user", "content": "Hello?"}]}
        self.assertTrue(TeamChatUi().parse(body).team)
        self.assertFalse(ChatUi().parse(body).team)

    def test_protocols_with_one_message_send_all_messages_in_it(self):
        self.assertEqual(
            RagChat().full_response(folded(TEAM))[1]["message"]["content"], "Facts [a.md#x].\n\nSo."
        )
        chunks = [
            chunk for encoder in [RagChat().encoder()] for event in TEAM for chunk in encoder.encode(event)
        ]
        streamed = "".join(chunk["delta"].get("content") or "" for chunk in chunks)
        self.assertEqual(streamed, "Facts [a.md#x].\n\nSo.")
        self.assertEqual(sum("context" in chunk for chunk in chunks), 1)
        self.assertEqual(
            OpenAI().full_response(folded(TEAM))[1]["choices"][0]["message"]["content"],
            "Facts [a.md#x].\n\nSo.",
        )
