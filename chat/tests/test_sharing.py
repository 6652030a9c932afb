"""Shared links under attack: what rests on documents closed to a reader is nowhere in what they get."""

import re
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client, TestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.verification import verify
from chatsite.accounts.models import ApiKey, AuditEntry
from chatsite.accounts.principal import Principal
from chatsite.logs import JsonFormatter
from history import recording, sharing
from history.models import Conversation, Message, Share, Source
from ingestion import documents
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document, Passage
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.test_glossary import make_word

OPEN, CLOSED = "handbook.md#page=11", "halyard-plan.md#page=3"
OPEN_WORDS = "A change of the place of work is announced at least eight weeks before."
CLOSED_WORDS = "The crew office moves to Port Ansel on 1 March 2027."
OPEN_STATEMENT = f"A change of the place of work is announced at least eight weeks before [{OPEN}]."
CLOSED_STATEMENT = f"The crew office moves to Port Ansel on 1 March 2027 [{CLOSED}]."
QUESTION = "When does the crew office move, and when will we be told?"
FOLLOWUP = "Who decided on Port Ansel?"
CANARIES = ("ansel", "halyard", "1 march")
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="[^"]+"')
CHANGING = re.compile(r"[0-9a-f]{32}|nonce-[^'\"]+")


class SharingCase(TestCase):
    def setUp(self):
        self.owner, self.reader = (
            make_user("mara", groups=["Pursers"]),
            make_user("reader", groups=["Pursers"]),
        )
        self.group = self.owner.groups.get()
        self.principal = Principal(self.owner.pk, "command")
        self.open = make_document(
            "handbook.md", [("page=11", 11, "Policies", OPEN_WORDS)], title="Handbook", everyone=True
        )
        self.closed = make_document(
            "halyard-plan.md",
            [("page=3", 3, "Project Halyard", CLOSED_WORDS)],
            title="Halyard plan",
            users=[self.owner],
            owner=self.owner,
        )
        self.conversation = recording.open_conversation(self.principal, title="The crew office")
        self.answer = self.say(f"{CLOSED_STATEMENT} {OPEN_STATEMENT}")
        self.client.force_login(self.reader)

    def say(self, text, question=QUESTION, given=(), **values):
        """A question and its answer, which was given both documents unless `given` names others."""
        given = given or ((self.closed, CLOSED, CLOSED_WORDS), (self.open, OPEN, OPEN_WORDS))
        recording.append(self.conversation, "user", question)
        labels = [label for _, label, _ in given]
        answer = recording.append(
            self.conversation,
            "assistant",
            text,
            **{
                "labels": labels,
                "citations": [label for label in labels if f"[{label}]" in text],
                "followups": [FOLLOWUP],
                "thoughts": [
                    {"title": "Prompt", "description": [f"{{'role': 'system', 'content': '{CLOSED_WORDS}'}}"]}
                ],
                "searched_count": 2,
                "run_id": None,
            }
            | values,
        )
        for rank, (document, label, words) in enumerate(given, start=1):
            Source.objects.create(
                message=answer,
                document=document,
                document_version=1,
                passage_id=Passage.objects.get(document=document).pk,
                rank=rank,
                label=label,
                title=document.title,
                heading="Project Halyard" if document == self.closed else "Policies",
                content=words,
                score=0.9,
                found_by="both",
            )
        return answer

    def share(self, audience=None, **values):
        audience = audience or Audience(group_ids=frozenset({self.group.pk}))
        self.row, self.token = sharing.create(self.principal, self.conversation.pk, audience, **values)
        self.url = f"/s/{self.token}/"
        return self.url

    def page(self, path=""):
        response = self.client.get(self.url + path)
        self.assertEqual(response.status_code, 200, path)
        return response.content.decode()

    def assert_clean(self, text):
        found = [canary for canary in CANARIES if canary in text.lower()]
        self.assertEqual(found, [], text)

    def assert_absent(self, url=None):
        url = url or self.url
        for path in ("", "source/1.1/", "source/1.2/", "export.md", "export.md?answer=1"):
            self.assertEqual(self.client.get(url + path).status_code, 404, path)
        before = Conversation.objects.count()
        self.assertEqual(self.client.post(url + "go-on").status_code, 404)
        self.assertEqual(Conversation.objects.count(), before)


@pytest.mark.slow
class WithholdingTests(SharingCase):
    def test_a_reader_with_all_rights_sees_everything_and_no_notice(self):
        set_audience(self.closed, Audience(group_ids=frozenset({self.group.pk})))
        self.share()
        text = self.page()
        self.assertIn("moves to Port Ansel", text)
        self.assertIn("Halyard plan", text)
        self.assertNotIn("left out", text)
        self.assertIn("moves to Port Ansel", self.page("source/1.1/"))

    def test_a_statement_on_a_closed_source_is_withheld_and_said_to_be(self):
        self.share()
        text = self.page()
        self.assertIn("announced at least eight weeks", text)
        self.assertIn("One statement is left out", text)
        self.assertIn("A document you cannot open", text)
        self.assertIn("mara", text)
        self.assert_clean(text)

    def test_no_source_of_it_opens_by_number_by_rank_or_by_statement(self):
        self.share()
        self.assertIn("announced at least eight weeks", self.page("source/1.2/"))
        for view in ("passage", "page", "thoughts", "support"):
            for path in (
                f"source/1.2/?view={view}",
                f"source/1.r2/?view={view}",
                f"source/1.2/?s=1&view={view}",
            ):
                self.assert_clean(self.page(path))
            for place in ("1.1", "1.r1", "1.3", "0.1", "9.1", "x"):
                for path in (f"source/{place}/?view={view}", f"?source={place}&view={view}"):
                    self.assertEqual(self.client.get(self.url + path).status_code, 404, path)

    def test_exports_have_no_more_than_the_page(self):
        self.share()
        for path in ("export.md", "export.md?answer=1"):
            text = self.page(path)
            self.assertIn("announced at least eight weeks", text)
            self.assertIn("[…]", text)
            self.assert_clean(text)

    def test_a_copy_has_no_more_than_the_page_wherever_it_is_read(self):
        self.share()
        copied = self.client.post(self.url + "go-on")
        self.assertEqual(copied.status_code, 303)
        mine = Conversation.objects.get(owner=self.reader)
        self.assertEqual(mine.title, "The crew office")
        question, answer = mine.messages.order_by("position")
        self.assertEqual(question.content, QUESTION)
        self.assertEqual((answer.labels, answer.citations), ([OPEN], [OPEN]))
        self.assertEqual([row.label for row in Source.objects.filter(message=answer)], [OPEN])
        self.assertEqual((answer.thoughts, answer.followups, answer.run_id), ([], [], None))
        self.assert_clean(repr(Message.objects.filter(conversation=mine).values()))
        page = self.client.get(f"/c/{mine.pk}/")
        self.assertContains(page, "announced at least eight weeks")
        self.assert_clean(page.content.decode())
        for path in (
            "",
            "?q=Ansel",
            f"{mine.pk}/messages",
            f"{mine.pk}/export",
            f"{mine.pk}/export?format=markdown",
        ):
            self.assert_clean(self.client.get(f"/chat-history/{path}").content.decode())

    def test_a_copy_can_be_gone_on_from_and_answered_again(self):
        self.share()
        page = self.client.post(self.url + "go-on").headers["Location"].partition("#")[0]
        self.assertEqual(self.client.post(f"{page}m/1/again").status_code, 303)
        self.assertEqual(self.conversation.messages.count(), 2, "the original stays as it is")

    def test_a_copy_that_is_shared_again_shows_its_readers_no_more(self):
        third = make_user("third", groups=["Pursers"])
        set_audience(self.open, Audience(user_ids=frozenset({self.reader.pk, self.owner.pk})))
        self.share()
        self.client.post(self.url + "go-on")
        mine = Conversation.objects.get(owner=self.reader)
        _, token = sharing.create(Principal(self.reader.pk, "command"), mine.pk, Audience(everyone=True))
        self.client.force_login(third)
        page = self.client.get(f"/s/{token}/").content.decode()
        self.assertNotIn("eight weeks", page)
        self.assertIn("This answer is left out", page)

    def test_text_that_cites_nothing_is_withheld_too_where_a_source_is_closed(self):
        text = (
            "## Project Halyard\n\nIn short: Port Ansel.\n\n```\nport ansel\n```\n\n> It is Port Ansel.\n\n"
            f"- {OPEN_STATEMENT}\n- Halyard is secret.\n\n| Case | Place |\n|---|---|\n| Crew | Port Ansel |"
        )
        Message.objects.filter(pk=self.answer.pk).update(content=text, citations=[OPEN])
        self.share()
        page = self.page()
        self.assertIn("eight weeks", page)
        self.assert_clean(page)
        self.assert_clean(self.page("export.md"))

    def test_a_statement_on_an_open_and_a_closed_source_is_shown_only_if_the_open_one_says_it_alone(self):
        both = f"[{CLOSED}][{OPEN}]"
        text = (
            f"A change of the place of work is announced at least eight weeks before {both}. "
            f"The crew office moves to Port Ansel eight weeks after the announcement {both}."
        )
        Message.objects.filter(pk=self.answer.pk).update(content=text)
        self.share()
        page = self.page()
        self.assertIn("announced at least eight weeks", page)
        self.assert_clean(page)

    def test_a_clause_of_a_closed_source_within_a_supported_statement_takes_it_along(self):
        text = (
            f"A change of the place of work is announced at least eight weeks before it relocates [{OPEN}]."
        )
        Message.objects.filter(pk=self.answer.pk).update(content=text)
        Source.objects.filter(label=CLOSED).update(content="Everybody relocates.")
        verdict = verify(text, Source.objects.filter(label=OPEN))[0].verdict
        self.assertEqual(verdict, "supported", "else the statement is withheld for another reason")
        self.share()
        self.assertNotIn("relocates", self.page())
        documents.delete_document(self.closed)
        self.assertNotIn("relocates", self.page(), "what cannot be compared any more is taken for closed")

    def test_code_between_the_words_of_a_statement_is_not_shown(self):
        half = OPEN_STATEMENT.partition(" announced")
        for fence in ("```", "~~~"):
            text = f"{half[0]}\n{fence}\nport ansel, halyard\n{fence}\n{half[1]}{half[2]}"
            Message.objects.filter(pk=self.answer.pk).update(content=text)
            self.share()
            self.assert_clean(self.page())

    def test_later_answers_repeat_nothing_of_an_earlier_one(self):
        self.say(f"As said, Port Ansel. {OPEN_STATEMENT}", "And then?", given=[(self.open, OPEN, OPEN_WORDS)])
        self.say("Nothing but Port Ansel.", "Anything else?", given=[(self.open, OPEN, OPEN_WORDS)])
        self.share()
        text = self.page()
        self.assertEqual(text.count("announced at least eight weeks"), 2)
        self.assertIn("This answer is left out", text)
        self.assert_clean(text)

    def test_a_suggested_question_of_closed_documents_is_withheld_with_the_title_made_of_it(self):
        self.say("I found nothing.", FOLLOWUP)
        self.share()
        self.assert_clean(self.page())
        Document.objects.filter(pk=self.closed.pk).update(
            questions=["What should I know about Project Halyard?"]
        )
        self.conversation = recording.open_conversation(
            self.principal, title="What should I know about Project Halyard?"
        )
        self.say(CLOSED_STATEMENT, "What should I know about Project Halyard?")
        self.share()
        text = self.page()
        self.assertIn("A question that is left out for you", text)
        self.assert_clean(text)
        self.assert_clean(self.page("export.md"))
        self.assertNotIn("Go on from here", text)
        self.assertEqual(self.client.post(self.url + "go-on").headers["Location"], self.url)
        self.assertFalse(Conversation.objects.filter(owner=self.reader).exists(), "nothing to copy")
        self.say(OPEN_STATEMENT, "And when will we be told?", given=[(self.open, OPEN, OPEN_WORDS)])
        self.share()
        self.client.post(self.url + "go-on")
        mine = Conversation.objects.get(owner=self.reader)
        self.assertEqual(mine.title, "Shared conversation")
        said = mine.messages.order_by("position").values_list("content", flat=True)
        self.assertEqual(list(said), ["And when will we be told?", OPEN_STATEMENT])

    def test_text_of_unknown_origin_is_withheld(self):
        Message.objects.filter(pk=self.answer.pk).update(
            imported=True, client_id="m1", labels=[], citations=[]
        )
        Source.objects.all().delete()
        self.share()
        self.assert_clean(self.page())

    def test_an_answer_that_was_given_earlier_messages_by_a_program_is_taken_as_resting_on_them(self):
        earlier = "{'role': 'assistant', 'content': 'Port Ansel'}"
        self.conversation = recording.open_conversation(self.principal, title="Later")
        thoughts = [{"title": "Prompt", "description": ["{'role': 'system', 'content': ''}", earlier]}]
        self.say(
            f"Port Ansel it is. {OPEN_STATEMENT}", given=[(self.open, OPEN, OPEN_WORDS)], thoughts=thoughts
        )
        self.share()
        self.assertIn("eight weeks", self.page())
        self.assert_clean(self.page())

    def test_one_answer_does_not_show_the_others_nor_their_title(self):
        second = self.say(OPEN_STATEMENT, "Another question?", given=[(self.open, OPEN, OPEN_WORDS)])
        self.share(answer_id=second.pk)
        text = self.page()
        self.assertIn("Another question?", text)
        self.assertNotIn("crew office", text)
        self.assertIn("eight weeks", self.page("source/3.1/"))
        for path in ("source/1.2/", "export.md?answer=1"):
            self.assertEqual(self.client.get(self.url + path).status_code, 404)
        self.assertNotIn("crew office", self.page("export.md"))

    def test_a_verified_answer_for_a_group_is_not_shown_outside_of_it(self):
        self.conversation.messages.all().delete()
        given = [(self.open, OPEN, OPEN_WORDS)]
        mark = {"by": "People Team", "until": "2030-01-01", "person": None, "groups": [self.group.pk]}
        answer = self.say(f"Zebra strike on Friday. {OPEN_STATEMENT}", given=given, verified=mark)
        self.say(f"Again: Zebra strike. {OPEN_STATEMENT}", given=given)
        self.share()
        self.assertIn("Zebra strike on Friday.", self.page())
        self.client.post(self.url + "go-on")
        copied = Conversation.objects.get(owner=self.reader).messages.get(content__contains="Friday")
        self.assertEqual(copied.verified, mark)
        Conversation.objects.filter(owner=self.reader).delete()
        other = Group.objects.create(name="Divers")
        Message.objects.filter(pk=answer.pk).update(verified={**mark, "groups": [other.pk]})
        page = self.page()
        self.assertNotIn("Zebra", page)
        self.assertIn("One statement is left out", page, "the later answer has another one")
        self.assertNotIn("Zebra", self.page("export.md"))
        self.client.post(self.url + "go-on")
        texts = Message.objects.filter(conversation__owner=self.reader).values_list("content", "verified")
        self.assertNotIn("Zebra", str(list(texts)))
        self.assertNotIn("People Team", str(list(texts)))
        before_groups_were_stored = {name: mark[name] for name in ("by", "until", "person")}
        for verified, shown in ((before_groups_were_stored, False), ({**mark, "groups": []}, True)):
            Message.objects.filter(pk=answer.pk).update(verified=verified)
            self.assertEqual("Zebra strike on Friday." in self.page(), shown, verified)

    def test_later_questions_are_not_shown(self):
        self.share()
        self.say(OPEN_STATEMENT, "A later question?", given=[(self.open, OPEN, OPEN_WORDS)])
        self.assertNotIn("A later question?", self.page())

    def test_an_answer_that_is_being_written_is_not_shown(self):
        self.share()
        Message.objects.filter(pk=self.answer.pk).update(state="streaming")
        text = self.page()
        self.assertIn("still being written", text)
        self.assertNotIn("eight weeks", text)

    def test_steps_searches_and_suggestions_are_the_askers_alone(self):
        set_audience(self.closed, Audience(everyone=True))
        self.share()
        for text in (
            self.page(),
            self.page("?source=1.1&view=thoughts"),
            self.page("source/1.1/?view=thoughts"),
        ):
            self.assertNotIn(FOLLOWUP, text)
            self.assertNotIn("How it was found", text)
            self.assertNotIn("Searched 2", text)


@pytest.mark.slow
class WordsTests(SharingCase):
    """A shared answer explains words of the house to its reader, and not to the person who shared it."""

    def explained(self, client):
        return "a place to meet before boarding" in client.get(self.url).content.decode()

    def test_a_word_of_a_group_is_explained_to_its_members_alone(self):
        crew = Group.objects.create(name="Crew")
        self.owner.groups.add(crew)
        make_word("place of work", meaning="a place to meet before boarding", groups=[crew])
        self.share(Audience(everyone=True))
        own = Client()
        own.force_login(self.owner)
        self.assertIn(
            "a place to meet before boarding", own.get(f"/c/{self.conversation.pk}/").content.decode()
        )
        self.assertFalse(self.explained(self.client))
        self.reader.groups.add(crew)
        self.assertTrue(self.explained(self.client))

    def test_a_word_of_the_reader_that_the_owner_may_not_see_is_explained(self):
        board = Group.objects.create(name="Board")
        self.reader.groups.add(board)
        make_word("place of work", meaning="a place to meet before boarding", groups=[board])
        self.share(Audience(everyone=True))
        self.assertTrue(self.explained(self.client))


@pytest.mark.slow
class ChangesTests(SharingCase):
    """What changes while a page is open counts at the next look."""

    def test_rights_withdrawn_or_given_count_at_once(self):
        set_audience(self.closed, Audience(everyone=True))
        self.share()
        self.assertIn("Port Ansel", self.page())
        self.assertIn("Port Ansel", self.page("source/1.1/"))
        set_audience(self.closed, Audience())
        self.assert_clean(self.page())
        self.assertEqual(self.client.get(self.url + "source/1.1/").status_code, 404)

    def test_a_deleted_document_takes_its_statements_along(self):
        set_audience(self.closed, Audience(everyone=True))
        self.share()
        documents.delete_document(self.closed)
        self.assert_clean(self.page())

    def test_a_passage_that_a_newer_version_does_not_have_is_closed(self):
        set_audience(self.closed, Audience(everyone=True))
        self.share()
        Document.objects.filter(pk=self.closed.pk).update(version=2, title="Office plan")
        self.assertIn("Port Ansel", self.page(), "it still stands there")
        self.assertNotIn("Halyard plan", self.page())
        Passage.objects.filter(document=self.closed).update(content="Nothing is decided.")
        self.assert_clean(self.page())
        self.assertEqual(self.client.get(self.url + "source/1.1/").status_code, 404)

    def test_a_reader_who_leaves_the_group_may_not_open_it_any_more(self):
        self.share()
        self.page()
        self.reader.groups.clear()
        self.assert_absent()

    def test_an_owner_who_is_disabled_or_deleted_shares_nothing(self):
        self.share()
        self.owner.is_active = False
        self.owner.save()
        self.assert_absent()
        self.owner.delete()
        self.assert_absent()

    def test_a_deleted_conversation_is_not_shared_until_it_is_restored(self):
        self.share()
        recording.delete(self.principal, self.conversation.pk)
        self.assert_absent()
        recording.restore(self.principal, self.conversation.pk)
        self.page()

    def test_it_ends_when_it_expires_or_is_revoked(self):
        self.share(expires_at=timezone.now() + timedelta(days=1))
        self.page()
        Share.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        self.assert_absent()
        self.share()
        sharing.revoke(self.principal, self.row.pk)
        self.assert_absent()

    def test_a_new_address_ends_the_old_one(self):
        old = self.share()
        _, token = sharing.renew(self.principal, self.row.pk)
        self.assert_absent(old)
        self.url = f"/s/{token}/"
        self.page()


@pytest.mark.slow
class ChangesOfOneAnswerTests(ChangesTests):
    """The same for a link to one answer."""

    def share(self, audience=None, **values):
        return super().share(audience, answer_id=self.answer.pk, **values)

    def test_a_reader_with_fewer_rights_sees_what_rests_on_open_documents(self):
        self.share()
        text = self.page()
        self.assertIn("announced at least eight weeks", text)
        self.assertIn("One statement is left out", text)
        self.assert_clean(text)
        self.assert_clean(self.page("export.md"))


@pytest.mark.slow
class PreviewTests(SharingCase):
    """What the sharer is told of readers who see less; no more than they may know of others' rights."""

    def setUp(self):
        super().setUp()
        self.client.force_login(self.owner)

    def created(self, people="reader", **posted):
        values = {"who": "some", "people": people, "days": "30", "answer": "", **posted}
        return self.client.post(f"/c/{self.conversation.pk}/share", values)

    def test_statements_on_ones_own_closed_document_are_counted_and_the_document_is_named(self):
        page = self.created()
        self.assertContains(page, "1 of 2 statements will be left out for readers")
        self.assertContains(page, f'href="/documents/{self.closed.public_id}/"')

    def test_the_form_says_it_before_anything_is_shared(self):
        set_audience(self.closed, Audience(user_ids=frozenset({self.reader.pk})))
        form = self.client.get(f"/c/{self.conversation.pk}/share")
        self.assertContains(form, "Up to 1 of 2 statements may be left out for some readers")
        foreseen = self.created(foresee="")
        self.assertContains(foreseen, "Everyone who can open the link sees all of it.")
        self.assertContains(self.created("", foresee=""), "Up to 1 of 2 statements may be left out")
        self.assertFalse(Share.objects.exists())

    def test_what_the_form_says_does_not_depend_on_rights_to_documents_of_others(self):
        Document.objects.filter(pk=self.closed.pk).update(owner=make_user("keeper"))
        self.closed.refresh_from_db()
        seen = set()
        for others in ((), (self.reader.pk,)):
            set_audience(self.closed, Audience(user_ids=frozenset({self.owner.pk, *others})))
            seen.add(CHANGING.sub("", CSRF.sub("", self.created(foresee="").content.decode())))
        self.assertEqual(len(seen), 1)

    def test_the_form_is_folded_once_a_link_is_made(self):
        self.assertContains(
            self.client.get(f"/c/{self.conversation.pk}/share"), '<details class="again" open>'
        )
        self.assertContains(self.created(), '<details class="again">')

    def test_if_nothing_is_open_that_is_said(self):
        self.conversation.messages.all().delete()
        self.say(CLOSED_STATEMENT, given=((self.closed, CLOSED, CLOSED_WORDS),))
        self.assertContains(self.created(), "Readers will see nothing of it")

    def test_a_document_that_names_the_readers_is_open_to_them_and_in_doubt_for_others(self):
        set_audience(self.closed, Audience(user_ids=frozenset({self.reader.pk})))
        self.assertContains(self.created(), "Everyone who can open the link sees all of it.")
        make_user("another")
        for page in (self.created("reader, another"), self.created("", who="everyone")):
            self.assertContains(page, "Up to 1 of 2 statements may be left out for some readers")

    def test_who_may_read_a_document_of_somebody_else_makes_no_difference(self):
        # Otherwise a link would tell of each colleague whether they may read a document.
        Document.objects.filter(pk=self.closed.pk).update(owner=make_user("keeper"))
        self.closed.refresh_from_db()
        for others in ((), (self.reader.pk,)):
            set_audience(self.closed, Audience(user_ids=frozenset({self.owner.pk, *others})))
            page = self.created()
            self.assertContains(page, "Up to 1 of 2 statements may be left out for some readers")
            self.assertNotContains(page, f'href="/documents/{self.closed.public_id}/"')

    def test_what_is_open_to_everyone_is_seen_by_everyone(self):
        set_audience(self.closed, Audience(everyone=True))
        self.assertContains(self.created(), "Everyone who can open the link sees all of it.")


class TokenTests(SharingCase):
    def test_only_the_hash_is_stored(self):
        self.share()
        self.assertNotIn(self.token, repr(Share.objects.values()))
        self.assertGreaterEqual(len(self.token), 43)

    def test_the_log_has_no_address_that_somebody_could_open(self):
        self.share()
        self.reader.groups.clear()
        with self.assertLogs("django.request", "WARNING") as logged:
            self.client.get(self.url)
        line = JsonFormatter().format(logged.records[0])
        self.assertIn("/s/…/", line)
        self.assertNotIn(self.token, line)

    def test_foreign_expired_revoked_and_guessed_tokens_get_the_same_answer_at_the_same_cost(self):
        foreign = self.share(Audience(user_ids=frozenset({make_user("another").pk})))
        expired = self.share()
        Share.objects.filter(pk=self.row.pk).update(expires_at=timezone.now() - timedelta(days=1))
        revoked = self.share()
        sharing.revoke(self.principal, self.row.pk)
        guessed = "/s/" + "x" * 43 + "/"
        self.client.get(guessed)
        seen = set()
        for url in (foreign, expired, revoked, guessed, "/s/x/"):
            with CaptureQueriesContext(connection) as queries:
                answer = self.client.get(url)
            body = CHANGING.sub("", answer.content.decode())
            names = sorted(set(answer.headers) - {"X-Request-ID"})
            seen.add((answer.status_code, body, tuple(names), len(queries)))
        self.assertEqual(len(seen), 1, seen)
        self.assertEqual(next(iter(seen))[0], 404)
        self.assertContains(answer, "This link does not work", status_code=404)
        self.assertContains(answer, "Ask the person who sent it.", status_code=404)
        self.assertContains(answer, 'id="side"', status_code=404)

    def test_somebody_who_has_not_signed_in_is_led_there_first_whatever_the_token(self):
        url = self.share()
        client = Client()
        for each in (url, "/s/guessed/"):
            answer = client.get(each)
            self.assertEqual(
                (answer.status_code, answer.headers["Location"]), (302, f"/accounts/sign-in/?next={each}")
            )
        with self.settings(LOGIN_REQUIRED=False):
            self.assertEqual(Client().get(url).status_code, 302, "a guest has not signed in")

    def test_the_page_is_kept_by_no_cache_and_its_address_told_to_no_other_site(self):
        self.share()
        answer = self.client.get(self.url)
        self.assertIn("no-store", answer.headers["Cache-Control"])
        self.assertEqual(answer.headers["Referrer-Policy"], "same-origin")

    def test_the_page_says_whose_it_is_with_whom_and_until_when(self):
        make_user("stranger", groups=["Deck"])
        end = timezone.now() + timedelta(days=3)
        self.share(expires_at=end)
        text = re.sub(r"\s+", " ", self.page())
        self.assertIn("<bdi>mara</bdi>", text)
        self.assertIn("with <bdi>Pursers</bdi>", text)
        self.assertIn(f"until {timezone.localtime(end):%-d %B %Y, %H:%M}", text)


@pytest.mark.slow
class OwnerTests(SharingCase):
    def setUp(self):
        super().setUp()
        self.client.force_login(self.owner)
        self.form = f"/c/{self.conversation.pk}/share"

    def create(self, **values):
        values = {"who": "some", "groups": [self.group.pk], "days": "7", "answer": ""} | values
        return self.client.post(self.form, values)

    def test_the_form_shows_the_address_once(self):
        made = self.create()
        address = re.search(r'href="(http://testserver/s/[^"]+)"', made.content.decode())[1]
        self.assertNotContains(self.client.get(self.form), address)
        self.assertEqual(self.client.get(address).status_code, 200)
        share = Share.objects.get()
        self.assertAlmostEqual(
            share.expires_at, timezone.now() + timedelta(days=7), delta=timedelta(minutes=1)
        )

    def test_the_form_shares_one_answer_with_people_without_end(self):
        self.create(groups=[], people="reader", days="0", answer="1")
        share = Share.objects.get()
        self.assertEqual((share.answer, share.expires_at), (self.answer, None))
        self.assertEqual(sharing.readers_of(share), "reader")

    def test_what_cannot_be_shared_is_refused_with_a_sentence(self):
        deck = make_user("sailor", groups=["Deck"]).groups.get()
        for values, words in (
            ({"groups": []}, "Choose a group, or name a person."),
            ({"groups": [deck.pk]}, "You can choose only groups you belong to."),
            ({"groups": [], "people": "nobody"}, "There is no account named nobody."),
            ({"who": "me"}, "Select a valid choice"),
            ({"who": "guests"}, "Select a valid choice"),
            ({"days": "9999"}, "Select a valid choice"),
            ({"answer": "0"}, "Select a valid choice"),
        ):
            with self.subTest(values):
                self.assertContains(self.create(**values), words, status_code=422)
        self.assertFalse(Share.objects.exists())

    def test_the_conversation_says_with_whom_it_is_shared_until_when(self):
        page = f"/c/{self.conversation.pk}/"
        self.assertNotContains(self.client.get(page), "shared-line")
        self.create()
        text = re.sub(r"\s+", " ", self.client.get(page).content.decode())
        self.assertIn("Shared with <bdi>Pursers</bdi> until", text)
        sharing.revoke(self.principal, Share.objects.get().pk)
        self.assertNotContains(self.client.get(page), "shared-line")

    def test_ones_links_are_listed_and_revoked(self):
        self.create()
        share = Share.objects.get()
        self.assertContains(self.client.get("/shares/"), "Pursers")
        address = f"/shares/{share.pk}/revoke"
        self.assertContains(self.client.get(address), "Pursers")
        self.assertIsNone(Share.objects.get().revoked_at, "it asks first")
        self.assertContains(self.client.post(address, follow=True), "Revoked")
        self.assertIsNotNone(Share.objects.get().revoked_at)

    def test_the_list_gives_a_new_address_but_none_for_a_link_that_has_ended(self):
        self.create()
        share = Share.objects.get()
        renewed = self.client.post(f"/shares/{share.pk}/renew").content.decode()
        address = re.search(r'href="(http://testserver/s/[^"]+)"', renewed)[1]
        self.assertEqual(self.client.get(address).status_code, 200)
        sharing.revoke(self.principal, share.pk)
        self.assertEqual(self.client.post(f"/shares/{share.pk}/renew").status_code, 303)
        self.assertEqual(self.client.get(address).status_code, 404)

    def test_the_list_needs_no_more_queries_for_more_links(self):
        self.create()
        self.client.get("/shares/")
        with CaptureQueriesContext(connection) as one:
            self.client.get("/shares/")
            needed = len(one)
        for _ in range(5):
            self.create()
        with self.assertNumQueries(needed):
            self.client.get("/shares/")


class ApiTests(SharingCase):
    def setUp(self):
        super().setUp()
        self.key = ApiKey.objects.issue(self.owner, "test")[1]

    def call(self, method, path="", body=None, key=None):
        send = getattr(self.client_class(), method)
        extra = {"data": body, "content_type": "application/json"} if body is not None else {}
        return send(f"/api/shares{path}", headers={"Authorization": f"Bearer {key or self.key}"}, **extra)

    def create(self, **values):
        return self.call("post", body={"conversation_id": str(self.conversation.pk)} | values)

    def test_a_share_is_created_listed_and_revoked(self):
        end = "2036-01-01T00:00:00Z"
        made = self.create(groups=["Pursers"], people=["reader"], expires_at=end)
        self.assertEqual(made.status_code, 201, made.content)
        told = made.json()
        address = told.pop("url")
        self.assertEqual((told["groups"], told["people"], told["everyone"]), (["Pursers"], ["reader"], False))
        self.assertEqual((told["state"], told["expires_at"], told["answer_id"]), ("open", end, None))
        self.assertEqual(self.call("get").json(), [told])
        self.assertNotIn(address, self.call("get").content.decode())
        self.assert_clean(self.client.get(address).content.decode())
        self.assertEqual(self.call("delete", f"/{told['id']}").status_code, 204)
        self.assertEqual(self.call("get").json()[0]["state"], "revoked")
        self.assertEqual(self.client.get(address).status_code, 404)

    def test_what_owners_do_with_links_is_in_the_audit_log_without_words_of_the_conversation(self):
        made = self.create(groups=["Pursers"], people=["reader"], expires_at="2036-01-01T00:00:00Z").json()
        sharing.renew(self.principal, made["id"])
        for _ in range(2):  # the second time nothing changes
            self.call("delete", f"/{made['id']}")
        self.create(everyone=True, answer_id=str(self.answer.pk), expires_at=None)
        entries = list(AuditEntry.objects.order_by("pk"))
        actions = ["share_created", "share_renewed", "share_revoked", "share_created"]
        self.assertEqual([entry.action for entry in entries], actions)
        self.assertEqual({(entry.actor, entry.person) for entry in entries}, {("mara", "mara")})
        first, *others, last = (entry.subject for entry in entries)
        everything = f"(everything until then of conversation {self.conversation.pk}, until 2036-01-01T00:00"
        self.assertTrue(first.startswith(f"{made['id']} {everything}"), first)
        self.assertTrue({"Pursers", "reader"} <= set(re.findall(r"\w+", first)), first)
        self.assertIn(self.reader.pk, [each["person"] for each in entries[0].named])
        self.assertEqual(others, [made["id"]] * 2)
        self.assertIn("(one answer of conversation", last)
        self.assertTrue(last.endswith("without an end), for Everyone who signs in"), last)
        for words in (self.conversation.title, *CANARIES, self.answer.content[:20], made["url"][-20:]):
            self.assertNotIn(words.lower(), " ".join(entry.subject for entry in entries).lower())

    def test_it_ends_in_thirty_days_unless_something_else_is_said(self):
        self.create(everyone=True)
        in_thirty_days = timezone.now() + timedelta(days=30)
        self.assertAlmostEqual(Share.objects.get().expires_at, in_thirty_days, delta=timedelta(minutes=1))
        self.assertIsNone(self.create(everyone=True, expires_at=None).json()["expires_at"])

    def test_refusals_are_problem_details_that_name_the_member(self):
        make_user("sailor", groups=["Deck"])
        make_user("gone", is_active=False)
        for body, pointer in (
            ({}, "/everyone"),
            ({"groups": ["Deck"]}, "/groups"),
            ({"people": ["nobody"]}, "/people"),
            ({"people": ["gone"]}, "/people"),
            ({"everyone": "maybe"}, "/everyone"),
            ({"everyone": 1}, "/everyone"),
            ({"groups": [5]}, "/groups/0"),
            ({"everyone": True, "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
            ({"everyone": True, "expires_at": "9999-12-31T23:59:59Z"}, "/expires_at"),
            ({"everyone": True, "conversation_id": "x"}, "/conversation_id"),
        ):
            refused = self.create(**body)
            self.assertEqual(refused.status_code, 400, body)
            self.assertEqual(refused.headers["Content-Type"], "application/problem+json")
            self.assertEqual(refused.json()["errors"][0]["pointer"], pointer)
        self.assertFalse(Share.objects.exists())

    def test_conversations_and_answers_of_others_cannot_be_shared_nor_their_shares_be_revoked(self):
        made = self.create(everyone=True).json()
        key = ApiKey.objects.issue(self.reader, "test")[1]
        body = {"conversation_id": str(self.conversation.pk), "everyone": True}
        self.assertEqual(self.call("post", "", body, key).status_code, 404)
        other = recording.open_conversation(Principal(self.reader.pk, "command"))
        body = {"conversation_id": str(other.pk), "answer_id": str(self.answer.pk), "everyone": True}
        self.assertEqual(self.call("post", "", body, key).status_code, 404)
        self.assertEqual(self.call("get", key=key).json(), [])
        for share in (made["id"], "none"):
            refused = self.call("delete", f"/{share}", key=key)
            self.assertEqual(refused.status_code, 404)
            self.assertEqual(refused.headers["Content-Type"], "application/problem+json")
        self.assertEqual(Share.objects.live().count(), 1)

    def test_one_person_has_a_bounded_number_of_open_links(self):
        with patch("history.sharing.MAX_OPEN", 2):
            self.create(everyone=True)
            self.create(everyone=True)
            self.assertEqual(self.create(everyone=True).status_code, 400)
            Share.objects.all().revoke()
            self.assertEqual(self.create(everyone=True).status_code, 201)


@pytest.mark.slow
class AdminTests(SharingCase):
    def setUp(self):
        super().setUp()
        self.share()
        self.staff = make_user("staff", is_staff=True)
        self.grant("view_share")
        self.list = "/admin/history/share/"
        self.one = f"{self.list}{self.row.pk}/change/"

    def grant(self, *codenames):
        self.staff.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        self.client.force_login(self.staff)

    def revoke(self):
        return self.client.post(self.list, {"action": "revoke", "_selected_action": [str(self.row.pk)]})

    def test_links_are_listed_and_each_look_is_in_the_audit_log(self):
        for page in (self.list, self.one):
            shown = self.client.get(page)
            for words in ("mara", "Pursers", str(self.row.conversation_id)):
                self.assertContains(shown, words)
            self.assertNotContains(shown, "The crew office")  # the title is Mara's words
            self.assertNotContains(shown, self.row.digest)
            self.assert_clean(shown.content.decode())
        looks = AuditEntry.objects.exclude(action="share_created").order_by("pk")
        looked = looks.values_list("action", "actor", "person")
        self.assertEqual(list(looked), [("shares_listed", "staff", ""), ("share_read", "staff", "mara")])

    def test_with_the_permission_a_link_is_revoked_with_an_entry_in_the_audit_log(self):
        self.revoke()
        self.assertIsNone(Share.objects.get().revoked_at)
        self.grant("view_share", "change_share")
        self.revoke()
        self.revoke()
        self.assertIsNotNone(Share.objects.get().revoked_at)
        revoked = AuditEntry.objects.filter(action="share_revoked")
        self.assertEqual(
            list(revoked.values_list("actor", "person", "subject")), [("staff", "mara", str(self.row.pk))]
        )
        self.client.force_login(self.reader)
        self.assert_absent()

    def test_without_the_right_there_is_nothing(self):
        self.grant("change_share")
        for page in (self.list, self.one, f"{self.list}add/"):
            self.assertEqual(self.client.get(page).status_code, 403)
        self.grant("view_share", "change_share", "add_share", "delete_share")
        self.assertEqual(self.client.post(self.one, {"digest": "x"}).status_code, 403)
        self.assertEqual(self.client.get(f"{self.list}{self.row.pk}/delete/").status_code, 403)
        self.assertEqual(self.client.get(f"{self.list}add/").status_code, 403)
