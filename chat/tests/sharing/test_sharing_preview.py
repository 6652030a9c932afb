"""What the share form says about what readers will see, before and after sharing."""

import pytest

from chat.tests.sharing_case import (
    CHANGING,
    CLOSED,
    CLOSED_STATEMENT,
    CLOSED_WORDS,
    CSRF,
    OPEN_STATEMENT,
    QUESTION,
    SharingCase,
)
from history import recording
from history.branches import START
from history.models import Share
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Document
from ingestion.tests.factories import make_user


@pytest.mark.slow
class PreviewTests(SharingCase):
    """What sharers learn about readers who see less: no more than they may know about others' rights."""

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

    def test_the_form_shows_the_preview_before_sharing(self):
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

    def test_the_chosen_answer_counts_and_not_the_one_in_the_address(self):
        self.say(OPEN_STATEMENT, "When will we be told?")
        address = f"/c/{self.conversation.pk}/share?answer=3"
        self.assertEqual(self.client.get(address).context["answer"], "3")
        values = {"who": "some", "people": "reader", "days": "30", "answer": ""}
        foreseen = self.client.post(address, values | {"foresee": ""})
        self.assertContains(foreseen, "1 of 3 statements will be left out for readers")
        self.client.post(address, values)
        self.assertIsNone(Share.objects.get().answer)
        self.client.post(address, values | {"answer": "3"})
        self.assertEqual(Share.objects.exclude(answer=None).get().answer.position, 3)

    def test_the_form_is_collapsed_after_creating_a_link(self):
        self.assertContains(
            self.client.get(f"/c/{self.conversation.pk}/share"), '<details class="again" open>'
        )
        self.assertContains(self.created(), '<details class="again">')

    def test_if_no_answer_is_open_the_form_says_that_the_questions_are(self):
        self.conversation.messages.all().delete()
        closed = ((self.closed, CLOSED, CLOSED_WORDS),)
        self.say(CLOSED_STATEMENT, given=closed)
        page = self.created()
        self.assertContains(page, "Readers will see your question word for word, but no answer to it")
        self.assertContains(page, "They also see the title: “<bdi>The crew office</bdi>”.")
        self.assertContains(page, '<div class="note warn"')
        self.assertNotContains(page, '<div class="note ok"')
        self.say(CLOSED_STATEMENT, "When is it?", given=closed)
        page = self.created()
        self.assertContains(page, "Readers will see your 2 questions word for word, but no answers to them")
        only_last = self.created(answer="3")
        self.assertContains(only_last, "Readers will see your question word for word, but no answer to it")
        self.assertNotContains(only_last, "They also see the title")
        Document.objects.filter(pk=self.closed.pk).update(owner=make_user("keeper"))
        page = self.created()
        self.assertContains(
            page, "Some readers may see your 2 questions word for word, but no answers to them"
        )
        self.assertContains(page, '<div class="note ok"')

    def test_the_form_says_if_nothing_is_open(self):
        Document.objects.filter(pk=self.closed.pk).update(questions=[QUESTION])
        self.conversation.messages.all().delete()
        self.say(CLOSED_STATEMENT, given=((self.closed, CLOSED, CLOSED_WORDS),))
        page = self.created()
        self.assertContains(page, "Readers will see none of it")
        self.assertNotContains(page, "The crew office</bdi>”.")

    def test_the_form_says_that_other_branches_are_left_out(self):
        words = "without other versions of a question or an answer and what followed them"
        self.assertNotContains(self.created(foresee=""), words)
        recording.go_back(self.conversation, START)
        self.say(OPEN_STATEMENT, "When will we be told?")
        self.assertContains(self.client.get(f"/c/{self.conversation.pk}/share"), words)
        self.assertContains(self.created(foresee=""), words)
        self.assertNotContains(self.created(foresee="", answer="3"), words)
        self.assertContains(self.created(), words)

    def test_a_document_that_names_the_readers_is_open_to_them_and_in_doubt_for_others(self):
        set_audience(self.closed, Audience(user_ids=frozenset({self.reader.pk})))
        self.assertContains(self.created(), "Everyone who can open the link sees all of it.")
        make_user("another")
        for page in (self.created("reader, another"), self.created("", who="everyone")):
            self.assertContains(page, "Up to 1 of 2 statements may be left out for some readers")

    def test_rights_to_documents_of_others_do_not_affect_the_preview(self):
        # Otherwise links could be used to find out which documents a colleague may read.
        Document.objects.filter(pk=self.closed.pk).update(owner=make_user("keeper"))
        self.closed.refresh_from_db()
        for others in ((), (self.reader.pk,)):
            set_audience(self.closed, Audience(user_ids=frozenset({self.owner.pk, *others})))
            page = self.created()
            self.assertContains(page, "Up to 1 of 2 statements may be left out for some readers")
            self.assertNotContains(page, f'href="/documents/{self.closed.public_id}/"')

    def test_documents_for_everyone_cause_no_warning(self):
        set_audience(self.closed, Audience(everyone=True))
        self.assertContains(self.created(), "Everyone who can open the link sees all of it.")
