"""Attacks on shared links: readers get nothing that is based on documents they may not read."""

from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from chat.portal.exported_page import as_page
from chat.tests.sharing_case import (
    CLOSED,
    CLOSED_STATEMENT,
    CLOSED_WORDS,
    FOLLOWUP,
    OPEN,
    OPEN_STATEMENT,
    OPEN_WORDS,
    QUESTION,
    SharingCase,
)
from chat.verification import verify
from chatsite.accounts.principal import Principal
from history import recording, sharing
from history.models import Conversation, Message, Share, Source
from ingestion import documents
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document
from ingestion.tests.factories import make_user
from ingestion.tests.search.test_glossary import make_word


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

    def test_a_statement_on_a_closed_source_is_withheld_with_a_notice(self):
        self.share()
        text = self.page()
        self.assertIn("announced at least eight weeks", text)
        self.assertIn("One statement is left out", text)
        self.assertIn("A document you cannot open", text)
        self.assertIn("mara", text)
        self.assert_clean(text)

    def test_an_answer_that_cannot_be_verified_shows_nothing_and_breaks_no_page(self):
        self.share()
        with (
            patch("chat.verification.verdicts.verify", side_effect=ValueError),
            self.assertLogs("chat.verification", "ERROR"),
        ):
            text = self.page()
        self.assertNotIn("announced at least eight weeks", text)
        self.assert_clean(text)

    def test_its_sources_do_not_open_by_number_rank_or_statement(self):
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
        for path in ("export.md", "export.md?answer=1", "export.html", "export.html?answer=1"):
            text = self.page(path)
            self.assertIn("announced at least eight weeks", text)
            self.assertIn("[…]", text)
            self.assert_clean(text)

    def test_an_export_is_refused_if_the_share_ends_while_it_is_rendered(self):
        self.share()

        def render(title, parts):
            Share.objects.update(revoked_at=timezone.now())
            return as_page(title, parts)

        with patch("chat.portal.views.as_page", render):
            response = self.client.get(self.url + "export.html")
        self.assertEqual(response.status_code, 303)
        self.assertEqual(self.client.get(response.headers["Location"]).status_code, 404)

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

    def test_a_copy_can_be_continued_and_regenerated(self):
        self.share()
        page = self.client.post(self.url + "go-on").headers["Location"].partition("#")[0]
        self.assertEqual(self.client.post(f"{page}m/1/again").status_code, 303)
        self.assertEqual(self.conversation.messages.count(), 2, "the original stays as it is")

    def test_a_copy_has_no_turn_whose_answer_is_left_out(self):
        self.say(CLOSED_STATEMENT, "And where to?", given=((self.closed, CLOSED, CLOSED_WORDS),))
        self.share()
        self.assertIn("Questions whose answers you do not see are not copied.", self.page())
        self.client.post(self.url + "go-on")
        mine = Conversation.objects.get(owner=self.reader)
        self.assertEqual([each.role for each in mine.messages.order_by("position")], ["user", "assistant"])
        self.assertFalse(mine.messages.filter(content="And where to?").exists())
        self.answer.delete()
        text = self.page()
        self.assertIn("And where to?", text)
        self.assertNotIn("Continue from here", text)
        self.assertEqual(self.client.post(self.url + "go-on").headers["Location"], self.url)
        self.assertEqual(Conversation.objects.filter(owner=self.reader).count(), 1)

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

    def test_text_without_a_citation_is_withheld_too_if_a_source_is_closed(self):
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

    def test_a_statement_on_open_and_closed_sources_is_shown_only_if_the_open_ones_support_it(self):
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

    def test_a_clause_of_a_closed_source_withholds_its_statement(self):
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
        self.assertNotIn("Continue from here", text)
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

    def test_an_answer_with_earlier_messages_of_a_program_counts_as_based_on_them(self):
        earlier = "{'role': 'assistant', 'content': 'Port Ansel'}"
        self.conversation = recording.open_conversation(self.principal, title="Later")
        thoughts = [{"title": "Prompt", "description": ["{'role': 'system', 'content': ''}", earlier]}]
        self.say(
            f"Port Ansel it is. {OPEN_STATEMENT}", given=[(self.open, OPEN, OPEN_WORDS)], thoughts=thoughts
        )
        self.share()
        self.assertIn("eight weeks", self.page())
        self.assert_clean(self.page())

    def test_a_later_answer_on_open_sources_alone_is_shown_completely(self):
        self.conversation = recording.open_conversation(self.principal, title="Later")
        given = [(self.open, OPEN, OPEN_WORDS)]
        self.say(OPEN_STATEMENT, given=given)
        earlier = ["{'role': 'system', 'content': ''}", f"{{'role': 'assistant', 'content': '{OPEN_WORDS}'}}"]
        told = [{"title": "Prompt", "description": earlier}]
        self.say(f"In short, in autumn. {OPEN_STATEMENT}", "And then?", given=given, thoughts=told)
        self.share()
        page = self.page()
        self.assertIn("in autumn", page)
        self.assertNotIn("left out", page)
        told = [{"title": "Prompt", "description": [*earlier, *[earlier[1]] * 2]}]
        self.say(f"In short, in winter. {OPEN_STATEMENT}", "And now?", given=given, thoughts=told)
        self.share()
        self.assertNotIn("in winter", self.page(), "a program gave more than the site has")

    def test_a_later_answer_that_a_program_gave_another_text_in_place_of_the_earlier_one_is_of_unknown_origin(
        self,
    ):
        self.conversation = recording.open_conversation(self.principal, title="Later")
        given = [(self.open, OPEN, OPEN_WORDS)]
        self.say(OPEN_STATEMENT, given=given)
        earlier = ["{'role': 'system', 'content': ''}", "{'role': 'assistant', 'content': 'To\\nPort Ansel'}"]
        told = [{"title": "Prompt", "description": earlier}]
        self.say(f"Port Ansel it is. {OPEN_STATEMENT}", "And then?", given=given, thoughts=told)
        self.share()
        self.assertIn("eight weeks", self.page())
        self.assert_clean(self.page())

    def test_a_shared_answer_shows_neither_the_others_nor_their_title(self):
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
        for path in ("", "export.md"):
            self.assertIn("Verified by People Team until 1 January 2030", self.page(path))
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

    def test_an_unfinished_answer_is_not_shown(self):
        self.share()
        Message.objects.filter(pk=self.answer.pk).update(state="streaming")
        text = self.page()
        self.assertIn("still being written", text)
        self.assertNotIn("eight weeks", text)

    def test_steps_searches_and_suggestions_are_shown_only_to_the_asker(self):
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
    """A shared answer explains glossary words by the rights of its reader, not of the sharer."""

    def explained(self, client):
        return "a place to meet before boarding" in client.get(self.url).content.decode()

    def test_a_word_of_a_group_is_explained_only_to_its_members(self):
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
