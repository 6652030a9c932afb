"""Edited questions and regenerated answers: nothing is overwritten; all readers follow the chosen branch."""

import asyncio
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat import runs
from chat.api.responses_views import _continued
from chat.errors import Refused
from chat.llm.chat_model import NOTHING_IN_PART
from chat.models import Run
from chat.portal.conversation.turns import turns_of
from chat.portal.frames import newer_turns
from chat.redaction.withholding import shared_messages
from chat.requests import Options, RunRequest
from chat.runs.earlier_messages import earlier_messages
from chat.unanswered.models import UnansweredQuestion
from chat.unanswered.question_judging import judge_new
from chatsite.db.threads import in_database
from history import conversation_export, conversation_lists, merging, message_search, recording, sharing
from history.branches import Branches, question_of
from history.models import Conversation, Message
from history.serializers.request_serializers import Incoming
from ingestion.access.lists import Audience
from ingestion.tests.factories import command_principal, make_document, make_user


def finished(run, text):
    """Close the answer of a run with this text."""
    owner = run.principal.user_id
    recording.close_answer(
        owner, run.answer_id, recording.AnswerOutcome(Message.State.COMPLETE, text, "stop")
    )
    Run.objects.filter(pk=run.run_id).update(finished_at=timezone.now())
    return run


class BranchCase(TestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.principal = command_principal(self.user)
        make_document(everyone=True)
        self.client.force_login(self.user)
        starting = patch("chat.runs.start")
        self.start = starting.start()
        self.addCleanup(starting.stop)
        self.first = self.ask("Leave?", "Five days.")  # 0, 1
        self.second = self.ask("Until when?", "March.")  # 2, 3

    @property
    def conversation(self):
        return Conversation.objects.get()

    @property
    def page(self):
        return f"/c/{self.conversation.pk}/"

    def ask(self, question, answer, **values):
        there = Conversation.objects.values_list("pk", flat=True).first()
        run = runs.begin(self.principal, RunRequest(question, there, **values))
        return finished(run, answer)

    def again(self, answer_id, text):
        return finished(runs.again(self.principal, answer_id), text)

    def said(self):
        return [
            row.content for row in conversation_lists.messages_shown(self.principal, self.conversation)[0]
        ]

    def all_said(self):
        rows = Message.objects.order_by("position").values_list("content", flat=True)
        return list(rows)


class BranchTests(BranchCase):
    def test_an_edited_question_begins_a_branch_and_the_old_one_stays(self):
        before = self.all_said()
        self.ask("Sick leave?", "Six weeks.", instead_of=0)
        self.assertEqual(self.said(), ["Sick leave?", "Six weeks."])
        self.assertEqual(self.all_said(), [*before, "Sick leave?", "Six weeks."])
        runs.choose_branch(self.principal, self.conversation.pk, 0)
        self.assertEqual(self.said(), before)
        self.ask("And then?", "They lapse.")
        self.assertEqual(self.said(), [*before, "And then?", "They lapse."])
        self.assertEqual(Message.objects.get(content="And then?").follows, 3)
        runs.choose_branch(self.principal, self.conversation.pk, 5)
        self.assertEqual(self.said(), ["Sick leave?", "Six weeks."])

    def test_an_edited_first_question_gives_the_conversation_its_title(self):
        def edited(place):
            return self.ask("Sick leave?", "Six weeks.", instead_of=place).is_untitled

        self.assertEqual([edited(2), edited(0)], [False, True])
        recording.rename(self.principal, self.conversation.pk, "Mine")
        self.assertFalse(edited(0))

    def test_a_regenerated_answer_is_a_version_with_its_own_continuation(self):
        self.again(self.first.answer_id, "Ten days.")
        self.assertEqual(self.said(), ["Leave?", "Ten days."])
        runs.choose_branch(self.principal, self.conversation.pk, 1)
        self.assertEqual(self.said(), ["Leave?", "Five days.", "Until when?", "March."])
        third = self.again(self.first.answer_id, "Twenty days.")
        self.assertEqual(Branches(self.conversation.pk).siblings(1), [1, 4, 5])
        self.assertEqual(question_of(Message.objects.get(pk=third.answer_id)).content, "Leave?")

    def test_switching_to_a_branch_shows_its_latest_message(self):
        self.ask("By when?", "June.", instead_of=2)  # 4, 5
        self.ask("Sure?", "Yes.")  # 6, 7
        self.ask("Sick?", "Six weeks.", instead_of=0)  # 8, 9
        runs.choose_branch(self.principal, self.conversation.pk, 0)
        self.assertEqual(self.said(), ["Leave?", "Five days.", "By when?", "June.", "Sure?", "Yes."])

    def test_the_model_gets_the_messages_that_lead_to_the_question(self):
        run = runs.begin(self.principal, RunRequest("By when?", self.conversation.pk, instead_of=2))
        self.assertEqual([each.content for each in earlier_messages(run)], ["Leave?", "Five days."])
        finished(run, "June.")
        run = runs.begin(self.principal, RunRequest("Sure?", self.conversation.pk))
        given = [each.content for each in earlier_messages(run)]
        self.assertEqual(given, ["Leave?", "Five days.", "By when?", "June."])

    def test_a_question_goes_to_the_branch_that_its_page_shows(self):
        self.ask("Sick leave?", "Six weeks.", instead_of=0)
        self.ask("And then?", "They lapse.", seen=3)
        self.assertEqual(self.said()[-4:], ["Until when?", "March.", "And then?", "They lapse."])
        self.ask("Sure?", "Yes.", seen=3)  # a page that does not know the newest question of its branch
        self.assertEqual(self.said()[-3:], ["They lapse.", "Sure?", "Yes."])
        self.ask("Really?", "Yes.", seen=999)
        self.assertEqual(self.said()[-3:], ["Yes.", "Really?", "Yes."])

    def test_the_same_key_asks_once_and_is_refused_in_another_branch(self):
        edited = RunRequest("Sick?", self.conversation.pk, instead_of=0)
        first = finished(runs.begin(self.principal, edited, idempotency_key="k"), "Six weeks.")
        self.assertEqual(runs.begin(self.principal, edited, idempotency_key="k").run_id, first.run_id)
        elsewhere = RunRequest("Sick?", self.conversation.pk, instead_of=2)
        with self.assertRaises(Refused) as refused:
            runs.begin(self.principal, elsewhere, idempotency_key="k")
        self.assertEqual(refused.exception.code, "idempotency_mismatch")

    def test_during_an_answer_branches_can_be_neither_started_nor_chosen(self):
        self.again(self.first.answer_id, "Ten days.")
        runs.begin(self.principal, RunRequest("Next?", self.conversation.pk))
        shown = self.said()
        for act in (
            lambda: runs.choose_branch(self.principal, self.conversation.pk, 1),
            lambda: runs.again(self.principal, self.first.answer_id),
            lambda: self.ask("Sick?", "", instead_of=0),
        ):
            with self.assertRaises(Refused) as refused:
                act()
            self.assertEqual(refused.exception.code, "generation_in_progress")
        self.assertEqual(self.said(), shown)

    def test_only_questions_can_be_edited(self):
        for place in (1, 99):
            with self.assertRaises(Refused) as refused:
                self.ask("Sick?", "", instead_of=place)
            self.assertEqual(refused.exception.code, "not_found")

    def test_messages_appended_by_an_older_version_of_the_site_are_shown(self):
        self.ask("Sick?", "Six weeks.", instead_of=0)
        values = {"conversation": self.conversation, "role": "user", "content": "From before?"}
        Message.objects.create(position=6, **values)
        self.assertEqual(self.said(), ["Sick?", "Six weeks.", "From before?"])
        self.ask("After?", "Yes.")
        self.assertEqual(self.said()[-3:], ["From before?", "After?", "Yes."])

    def test_a_named_response_continues_in_its_own_branch(self):
        self.ask("Sick?", "Six weeks.", instead_of=0)
        asked = _continued(self.principal, RunRequest("And?"), self.second.run_id)
        self.assertIsNone(asked.conversation_id)
        with transaction.atomic():
            copied = recording.copy_branch(self.principal, UUID(asked.copies_to), "And?")
        said = [message.content for message in copied.messages.order_by("position")]
        self.assertEqual(said, ["Leave?", "Five days.", "Until when?", "March."])

    def test_a_conversation_that_begins_with_copies_is_not_without_a_title(self):
        self.ask("Sick?", "Six weeks.", instead_of=0)
        asked = _continued(self.principal, RunRequest("And?"), self.second.run_id)
        self.assertTrue(runs.begin(self.principal, asked).is_untitled)
        question = RunRequest("Until when?", self.second.conversation_id)
        self.assertFalse(runs.begin(self.principal, question).is_untitled)

    def test_a_copy_of_a_deleted_answer_is_refused_as_not_found(self):
        with self.assertRaises(Refused) as refused:
            runs.begin(self.principal, RunRequest("And?", copies_to=str(uuid4())))
        self.assertEqual(refused.exception.code, "answer_not_found")


class SearchEverythingTests(BranchCase):
    def setUp(self):
        super().setUp()
        make_document("leave.md", everyone=True, folder="HR")
        narrowed = RunRequest("Bonus?", self.conversation.pk, options=Options(scope="folder:HR"))
        self.narrowed = runs.begin(self.principal, narrowed)
        thoughts = [{"title": "Generated search query", "props": {"scope": "folder:HR"}}]
        Message.objects.filter(pk=self.narrowed.answer_id).update(thoughts=thoughts)

    def test_an_answer_without_a_source_in_its_scope_offers_to_search_everything(self):
        finished(self.narrowed, NOTHING_IN_PART)
        page = self.client.get(self.page)
        self.assertContains(page, "Nothing was found in the part of the documents that was searched.")
        self.assertContains(page, "Searched only in <bdi>the folder “HR”</bdi>.")
        self.assertContains(page, "Search everything</button>")
        self.client.post(f"{self.page}m/5/again", {"scope": "all"})
        run = self.start.call_args.args[0]
        self.assertEqual((run.request.question, run.request.options.scope), ("Bonus?", "all"))
        self.assertEqual(self.conversation.scope, "all")  # the box shows the scope of the next question
        finished(run, "Ten percent.")
        page = self.client.get(self.page)
        self.assertContains(page, 'aria-label="Version 2 of 2"')
        self.assertNotContains(page, "Search everything</button>")

    def test_an_answer_with_a_source_or_from_everything_does_not(self):
        closing = recording.AnswerOutcome(
            Message.State.COMPLETE, "Ten [leave.md].", "stop", citations=("leave.md",)
        )
        recording.close_answer(self.user.pk, self.narrowed.answer_id, closing)
        self.assertNotContains(self.client.get(self.page), "Search everything</button>")

    def test_an_invalid_scope_changes_nothing_and_others_cannot_search(self):
        finished(self.narrowed, NOTHING_IN_PART)
        self.client.post(f"{self.page}m/5/again", {"scope": "everything"})
        self.assertEqual(self.conversation.scope, "folder:HR")
        self.client.force_login(make_user("stranger"))
        self.assertEqual(self.client.post(f"{self.page}m/5/again", {"scope": "all"}).status_code, 404)


class ReaderTests(BranchCase):
    """Other readers of conversations."""

    def setUp(self):
        super().setUp()
        self.ask("Sick leave?", "Six weeks.", instead_of=0)  # 4, 5

    def test_exports_have_the_chosen_branch_and_json_the_others_beside_it(self):
        self.assertNotIn("Five days.", conversation_export.as_markdown(self.principal, self.conversation))
        body = conversation_export.as_json(self.principal, self.conversation)
        self.assertEqual([each["content"] for each in body["messages"]], ["Sick leave?", "Six weeks."])
        others = {each["content"]: each for each in body["otherBranches"]}
        self.assertEqual(list(others), ["Leave?", "Five days.", "Until when?", "March."])
        self.assertIsNone(others["Leave?"]["follows"])
        self.assertEqual(others["March."]["follows"], others["Until when?"]["messageId"])
        self.assertEqual(
            conversation_export.answer_as_markdown(self.principal, self.conversation, 3), "March.\n"
        )

    def test_lists_and_searches_know_the_chosen_branch(self):
        (summary,) = conversation_lists.summaries([self.conversation])
        self.assertEqual((summary.message_count, summary.last_message), (2, "Six weeks."))
        for query, found in {"March": 0, "weeks": 1}.items():
            rows, _ = message_search.page(self.principal, query, 10)
            self.assertEqual(len(rows), found, query)

    def test_continuing_another_version_starts_a_conversation_of_its_own(self):
        self.again(self.second.answer_id, "April.")
        asked = _continued(self.principal, RunRequest("And then?"), self.second.run_id)
        self.assertIsNone(asked.conversation_id)
        self.assertEqual(Message.objects.get(pk=asked.copies_to).content, "March.")

    def test_a_share_does_not_show_the_title_of_a_first_question_that_was_edited(self):
        self.ask("Why was nobody dismissed?", "Nobody knows.", instead_of=0)
        _, token = sharing.create(self.principal, self.conversation.pk, Audience(everyone=True))
        self.client.force_login(make_user("reader"))
        for path in (f"/s/{token}/", f"/s/{token}/export.md"):
            self.assertNotContains(self.client.get(path), "Leave?")
        self.client.post(f"/s/{token}/go-on")
        self.assertFalse(
            Conversation.objects.filter(owner__username="reader", title__contains="Leave?").exists()
        )
        Conversation.objects.filter(owner=self.user).update(title="Renamed", title_by_owner=True)
        self.assertNotContains(self.client.get(f"/s/{token}/"), "Renamed")
        renamed = Conversation.objects.get(owner=self.user)
        _, token = sharing.create(self.principal, renamed.pk, Audience(everyone=True))
        self.assertContains(self.client.get(f"/s/{token}/"), "Renamed")

    def test_a_share_keeps_its_branch_when_another_one_is_chosen(self):
        everyone = Audience(everyone=True)
        share, _ = sharing.create(self.principal, self.conversation.pk, everyone)
        runs.choose_branch(self.principal, self.conversation.pk, 0)
        reader = command_principal(make_user("reader"))
        shown = [each.message.content for each in shared_messages(reader, share)]
        self.assertEqual(shown, ["Sick leave?", "Six weeks."])
        older, _ = sharing.create(self.principal, self.conversation.pk, everyone)
        runs.choose_branch(self.principal, self.conversation.pk, 4)
        shown = [each.message.content for each in shared_messages(reader, older)]
        self.assertEqual(shown, ["Leave?", "Five days.", "Until when?", "March."])

    def test_a_program_that_saves_a_conversation_adds_to_the_chosen_branch(self):
        shown = conversation_lists.messages_shown(self.principal, self.conversation)[0]
        kept = [Incoming(str(row.pk), row.role, row.content) for row in shown]
        merging.merge(self.principal, self.conversation.pk, [*kept, Incoming("own", "user", "Noted.")])
        self.assertEqual(self.said(), ["Sick leave?", "Six weeks.", "Noted."])
        runs.choose_branch(self.principal, self.conversation.pk, 0)
        merging.merge(self.principal, self.conversation.pk, [Incoming("there", "user", "Here.")])
        self.assertEqual(self.said()[-2:], ["March.", "Here."])

    def test_a_version_counts_for_the_question_that_it_answers(self):
        runs.choose_branch(self.principal, self.conversation.pk, 0)
        self.again(self.first.answer_id, "Ten days.")
        judge_new()
        again = UnansweredQuestion.objects.filter(reasons__contains=["again"])
        self.assertEqual([each.message.content for each in again], ["Leave?"])

    def test_a_waiting_page_learns_that_another_branch_was_chosen(self):
        place = self.conversation.pk
        self.assertEqual(newer_turns(self.principal, place, 4), (None, None))
        self.assertIsNone(newer_turns(self.principal, place, 6))
        runs.choose_branch(self.principal, place, 0)
        self.assertIsNone(newer_turns(self.principal, place, 4))

    @pytest.mark.slow
    def test_forty_branches_need_no_additional_query(self):
        def queries():
            with CaptureQueriesContext(connection) as made:
                turns = turns_of(self.principal, self.conversation)
                shown = [(turn.switch, [answer.switch for answer in turn.answers]) for turn in turns]
            return len(made), shown

        few, _ = queries()
        for number in range(38):
            self.ask(f"Sick leave {number}?", "Six weeks.", instead_of=0)
        many, shown = queries()
        self.assertEqual(many, few)
        ((switch, answers),) = shown
        self.assertEqual((switch.number, switch.count, switch.next, answers), (40, 40, None, [None]))


@pytest.mark.slow
class PageTests(BranchCase):
    def test_a_question_is_edited_by_the_form_and_the_branch_switched_back(self):
        form = self.client.get(f"{self.page}q/0/edit")
        self.assertContains(form, "Leave?</textarea>")
        self.assertEqual(self.client.get(f"{self.page}q/1/edit").status_code, 404)
        values = {"question": "Sick\r\nleave?", "key": form.context["form_key"]}
        for _ in range(2):
            self.assertEqual(self.client.post(f"{self.page}q/0/edit", values).status_code, 303)
        run = self.start.call_args.args[0]
        refused = self.client.post(f"{self.page}q/0/edit", {"question": "Or this?"})
        self.assertContains(refused, "Or this?", status_code=409)
        finished(run, "Six weeks.")
        page = self.client.get(self.page)
        self.assertContains(page, "Sick\nleave?")
        self.assertContains(page, 'aria-label="Question 2 of 2"')
        self.assertNotContains(page, "Five days.")
        there = self.client.post(f"{self.page}m/0/choose")
        self.assertEqual(there.headers["Location"], f"{self.page}#e-0")
        page = self.client.get(self.page)
        self.assertContains(page, "Until when?")
        self.assertContains(page, f'formaction="{self.page}m/4/choose"')
        self.assertEqual(self.client.post(f"{self.page}m/77/choose").status_code, 404)

    def test_versions_are_counted_below_the_answer(self):
        self.again(self.first.answer_id, "Ten days.")
        page = self.client.get(self.page)
        self.assertContains(page, 'aria-label="Version 2 of 2"')
        self.assertNotContains(page, 'aria-label="Question')
        self.client.post(f"{self.page}m/1/choose")
        self.assertContains(self.client.get(self.page), 'aria-label="Version 1 of 2"')

    def test_a_branch_that_cannot_be_chosen_is_refused_on_the_page(self):
        self.again(self.first.answer_id, "Ten days.")
        runs.begin(self.principal, RunRequest("Next?", self.conversation.pk))
        self.assertEqual(self.client.post(f"{self.page}m/1/choose").status_code, 409)

    def test_other_people_can_neither_edit_nor_choose_branches(self):
        self.client.force_login(make_user("stranger"))
        for path in ("q/0/edit", "m/0/choose"):
            self.assertEqual(self.client.post(self.page + path, {"question": "x"}).status_code, 404)


class AtOnceTests(TransactionTestCase):
    async def test_one_of_two_concurrent_edits_is_asked_and_the_other_refused(self):
        principal = command_principal(await in_database(make_user, "asker"))
        first = await in_database(runs.begin, principal, RunRequest("Leave?"))
        await in_database(finished, first, "Five days.")

        async def edit(text):
            asked = RunRequest(text, first.conversation_id, instead_of=0)
            try:
                return await in_database(runs.begin, principal, asked)
            except Refused as refused:
                return refused.code

        outcomes = await asyncio.gather(edit("Sick leave?"), edit("Parental leave?"))
        self.assertEqual(outcomes.count("generation_in_progress"), 1)
        shown = Message.objects.filter(conversation=first.conversation_id).chosen()
        self.assertEqual(await in_database(shown.count), 2)
