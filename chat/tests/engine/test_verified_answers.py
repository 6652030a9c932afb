"""Verified answers: who gets them and when, how they are marked, and that they are hidden from others."""

import json
from datetime import timedelta

from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.test import AsyncClient, Client, TransactionTestCase, override_settings
from django.utils import timezone

from chat.llm import use_model
from chat.llm.chat_model import NOTHING_FITS
from chat.models import VerifiedAnswer
from chat.tests.scripted_model import ScriptedModel
from chat.verified_answers import digest_of, passage_with
from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import Principal
from history import conversation_export
from history.models import Conversation, Message
from history.signatures import signed
from ingestion.access.lists import Audience, set_audience
from ingestion.documents import delete_document
from ingestion.models import Document, Passage
from ingestion.tests.factories import make_document, make_user

QUESTION = "When must carried leave be used?"
WORDS = "carry over five days of leave"
CANARY = "quellzorn"
TEXT = f"Use carried days by **31 March** [1]. The code is {CANARY}."
SIGNED = "Verified by People Team until "


def make_verified(*documents, text=TEXT, question=QUESTION, owner=None, **values):
    """A verified answer that cites the passage with WORDS of each document."""
    answer = VerifiedAnswer.objects.create(
        text=text,
        owner=owner or make_user(),
        team="People Team",
        valid_until=values.pop("valid_until", timezone.localdate() + timedelta(days=30)),
        citation_count=len(documents),
        **values,
    )
    answer.questions.create(text=question)
    for document in documents:
        passage = passage_with(document, WORDS)
        answer.citations.create(
            document=document,
            words=WORDS,
            position=passage.position,
            digest=digest_of(passage),
            sha256=document.sha256,
        )
    return answer


@override_settings(QUOTING_WORDS_PER_SECOND=0)
class VerifiedAnswerTests(TransactionTestCase):
    def setUp(self):
        self.reader = make_user("reader", groups=["Crew"])
        self.document = make_document(groups=[Group.objects.get(name="Crew")])
        self.answer = make_verified(self.document)

    def ask(self, question=QUESTION, person=None, path="/chat", **members):
        """The answer that a model would give without the verified answer."""
        _, key = ApiKey.objects.issue(person or self.reader, "a program")
        asked = {} if "input" in members else {"messages": [{"role": "user", "content": question}]}
        body = asked | members

        async def reply():
            with use_model(ScriptedModel(words=["A generated ", "answer [guide.md]."])):
                return await AsyncClient().post(
                    path, body, "application/json", headers={"Authorization": f"Bearer {key}"}
                )

        response = async_to_sync(reply)()
        self.assertEqual(response.status_code, 200, response.content)
        return response.json()

    def assert_verified(self, reply):
        self.assertEqual(reply["output_text"], TEXT.replace("[1]", "[guide.md]"))
        self.assertEqual(reply["context"]["verified"]["by"], "People Team")

    def assert_ordinary(self, reply):
        self.assertIn(
            reply["output_text"], {"A generated answer [guide.md].", "A generated answer.", NOTHING_FITS}
        )
        self.assertNotIn(CANARY, json.dumps(reply))
        self.assertNotIn("People Team", json.dumps(reply))
        self.assertNotIn("erified", json.dumps(reply["context"]["thoughts"]))

    def test_a_verified_answer_replaces_a_generated_one_with_its_source_and_mark(self):
        reply = self.ask("By when must carried leave be used?")
        self.assert_verified(reply)
        self.assertEqual(reply["context"]["verified"]["until"], self.answer.valid_until.isoformat())
        self.assertEqual(reply["context"]["data_points"]["citations"], ["guide.md"])
        titles = [thought["title"] for thought in reply["context"]["thoughts"]]
        self.assertIn("Verified answer", titles)
        self.assertNotIn("Prompt", titles)
        stored = Message.objects.get(role="assistant")
        self.assertEqual((stored.state, stored.verified["by"]), ("complete", "People Team"))
        self.assertEqual(stored.sources.get().document, self.document)

    def test_the_answer_names_its_question_unless_the_wording_is_the_same(self):
        for asked in (QUESTION, QUESTION.upper().rstrip("?")):
            self.assertNotIn("question", self.ask(asked)["context"]["verified"])
        near = "By when must carried leave be used?"
        reply = self.ask(near)
        self.assertEqual(reply["context"]["verified"]["question"], QUESTION)
        stored = Message.objects.filter(role="assistant").latest("created_at")
        self.assertIn(f"for the question “{QUESTION}”", signed(stored.verified))
        self.answer.questions.create(text=near)
        self.assertNotIn("question", self.ask(near)["context"]["verified"])

    def test_a_look_alike_gets_a_generated_answer(self):
        for question in ("When must carried leave not be used?", "When must sick leave be used?"):
            self.assert_ordinary(self.ask(question))

    def test_without_the_right_to_the_source_there_is_no_trace_of_it(self):
        self.assert_ordinary(self.ask(person=make_user("stranger")))
        make_document("public.md", everyone=True)
        self.assert_ordinary(self.ask(person=make_user("another")))

    def test_all_sources_have_to_be_readable(self):
        self.answer.delete()
        make_verified(self.document, make_document("other.md", owner=make_user("cat")))
        self.assert_ordinary(self.ask())

    def test_the_answer_follows_rights_withdrawn_and_returned(self):
        set_audience(self.document, Audience())
        self.assert_ordinary(self.ask())
        set_audience(self.document, Audience(everyone=True))
        self.assert_verified(self.ask())

    def test_the_answer_is_withheld_when_a_source_changes(self):
        Document.objects.update(sha256="0" * 64)
        self.assert_ordinary(self.ask())

    def test_the_answer_is_withheld_when_a_source_is_no_longer_valid(self):
        Document.objects.update(valid_until=timezone.localdate())
        self.assert_verified(self.ask())
        Document.objects.update(valid_until=timezone.localdate() - timedelta(days=1))
        self.assert_ordinary(self.ask())

    def test_the_answer_is_withheld_if_the_passage_reads_differently(self):
        Passage.objects.update(content="Employees may carry over five days of leave until 30 April.")
        self.assert_ordinary(self.ask())

    def test_the_answer_stays_if_a_file_read_again_has_the_same_text(self):
        Document.objects.update(version=2)
        self.assert_verified(self.ask())

    def test_the_answer_is_withheld_without_one_of_its_sources(self):
        self.answer.delete()
        second = make_document("second.md", everyone=True)
        make_verified(self.document, second)
        delete_document(second)
        self.assertEqual(VerifiedAnswer.objects.get().citations.count(), 1)
        self.assert_ordinary(self.ask())

    def test_an_expired_draft_or_ownerless_answer_is_withheld(self):
        yesterday = timezone.localdate() - timedelta(days=1)
        for change in ({"valid_until": yesterday}, {"active": False}, {"owner": None}):
            before = VerifiedAnswer.objects.values("valid_until", "active", "owner").get()
            VerifiedAnswer.objects.update(**change)
            self.assert_ordinary(self.ask())
            VerifiedAnswer.objects.update(**before)
        VerifiedAnswer.objects.update(valid_until=timezone.localdate())
        self.assert_verified(self.ask())

    def test_audience_and_owner_are_stored_and_never_sent(self):
        crew = Group.objects.get(name="Crew")
        self.answer.groups.add(crew)
        VerifiedAnswer.objects.update(team="")
        reply = self.ask()
        stored = Message.objects.get(role="assistant")
        self.assertEqual(
            (stored.verified["groups"], stored.verified["person"]), ([crew.pk], self.answer.owner_id)
        )
        key = ApiKey.objects.issue(self.reader, "reading")[1]
        saved = self.client.get(
            f"/chat-history/{stored.conversation_id}/messages", headers={"Authorization": f"Bearer {key}"}
        ).json()
        for mark in (reply["context"]["verified"], saved[1]["verified"]):
            self.assertEqual(mark.keys(), {"by", "until"})
        for thought in reply["context"]["thoughts"]:
            self.assertFalse({"groups", "person"} & (thought.get("props") or {}).keys())

    def test_groups_narrow_the_audience_and_never_widen_it(self):
        self.answer.groups.add(Group.objects.create(name="Pursers"))
        self.assert_ordinary(self.ask())
        self.assert_ordinary(self.ask(person=make_user("purser", groups=["Pursers"])))
        self.reader.groups.add(Group.objects.get(name="Pursers"))
        self.assert_verified(self.ask())

    def test_a_request_for_certain_documents_or_another_form_is_not_answered_by_it(self):
        self.assert_ordinary(self.ask(context={"overrides": {"exclude_category": "old"}}))

    def test_a_question_that_leans_on_an_earlier_one_is_not_answered_by_it(self):
        self.answer.questions.create(text="And on Fridays?")
        said = [
            {"role": "user", "content": "When is the canteen open?"},
            {"role": "assistant", "content": "At noon."},
            {"role": "user", "content": "And on Fridays?"},
        ]
        self.assert_ordinary(self.ask(messages=said))

    def test_other_protocols_carry_the_mark_too(self):
        reply = self.ask(path="/v1/chat/completions", model="x")
        self.assertEqual(reply["verified"]["by"], "People Team")
        self.assertIn(CANARY, reply["choices"][0]["message"]["content"])
        reply = self.ask(path="/v1/responses", model="x", input=QUESTION)
        self.assertEqual(reply["verified"]["by"], "People Team")

    def test_statements_confirmed_by_the_author_cause_no_warnings(self):
        self.answer.text = (
            "Unused days lapse in **August** without exception [1]. Ask the front desk about the boat house."
        )
        self.answer.save()
        self.ask(context={"overrides": {}})
        conversation = Conversation.objects.get()
        Conversation.objects.update(listed=True)
        client = Client()
        client.force_login(self.reader)
        page = client.get(f"/c/{conversation.pk}/")
        self.assertContains(page, "1 statement checked by People Team")
        self.assertContains(page, "1 statement without a source, confirmed by People Team")
        for warning in ("not found", "unproved with-icon", "checked with-icon", "cites no source", "<mark"):
            self.assertNotContains(page, warning)
        panel = client.get(f"/c/{conversation.pk}/", {"source": "1.1", "s": "1"})
        self.assertNotContains(panel, "unproved")
        exported = conversation_export.as_markdown(Principal(self.reader.pk, "session"), conversation)
        self.assertIn("*1 statement checked by People Team*", exported)

    def test_portal_exports_and_stored_messages_say_who_verified_the_answer(self):
        self.ask(context={"overrides": {}})
        conversation = Conversation.objects.get()
        Conversation.objects.update(listed=True)
        client = Client()
        client.force_login(self.reader)
        self.assertContains(client.get(f"/c/{conversation.pk}/"), SIGNED)
        principal = Principal(self.reader.pk, "session")
        self.assertIn(f"*{SIGNED}", conversation_export.as_markdown(principal, conversation))
        answer = conversation_export.as_json(principal, conversation)["messages"][-1]
        self.assertEqual(answer["verified"]["by"], "People Team")
        self.assertNotIn("verified", conversation_export.as_json(principal, conversation)["messages"][0])
