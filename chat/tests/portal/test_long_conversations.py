"""Conversations of thousands of messages: pages of turns and shares have a bounded cost."""

import re
import time
from unittest.mock import patch

import pytest
from django.db import connection
from django.test import SimpleTestCase
from django.test.utils import CaptureQueriesContext

from chat.portal.conversation.turn_pages import TURNS_SHOWN, page_at
from chat.tests.sharing_case import (
    CLOSED,
    CLOSED_STATEMENT,
    CLOSED_WORDS,
    OPEN,
    OPEN_STATEMENT,
    OPEN_WORDS,
    SharingCase,
)
from history import recording
from history.models import Message, Source
from ingestion.models import Passage

TURNS = 130
SHOWN = re.compile(r'class="turn"\s+aria-labelledby="q-(\d+)"')
LINK = re.compile(r'href="([^"]*)"[^>]*>(Earlier questions|Later questions|To the latest questions)<')


class PageTests(SimpleTestCase):
    def test_pages_lead_through_every_turn_and_back(self):
        for count in (0, 1, TURNS_SHOWN, TURNS_SHOWN + 1, 3 * TURNS_SHOWN, 173):
            asked = [3 * number for number in range(count)]
            page, seen = page_at(asked, None), set()
            while True:
                seen.update(each for each in asked if page.first <= each < (page.end or 10**9))
                if page.older is None:
                    break
                page = page_at(asked, page.older)
            self.assertEqual(sorted(seen), asked)
            steps = 0
            while not page.is_newest:
                before, page = page, page_at(asked, page.newer)
                self.assertLessEqual(page.first, before.end)
                steps += 1
            self.assertLessEqual(steps, count // TURNS_SHOWN + 1)

    def test_the_page_of_a_position_has_its_turn(self):
        asked = [3 * number for number in range(173)]
        for position in range(3 * 173):
            page = page_at(asked, position)
            self.assertTrue(page.first <= 3 * (position // 3) < (page.end or 10**9))
            on_page = [each for each in asked if page.first <= each < (page.end or 10**9)]
            self.assertLessEqual(len(on_page), TURNS_SHOWN)


class LongConversationCase(SharingCase):
    turns = TURNS

    def setUp(self):
        super().setUp()
        Message.objects.filter(conversation=self.conversation).delete()
        given = ((self.closed, CLOSED, CLOSED_WORDS), (self.open, OPEN, OPEN_WORDS))
        rows = []
        for number in range(self.turns):
            rows.append({"role": "user", "content": f"Question number {number}, please?"})
            text = f"{CLOSED_STATEMENT} {OPEN_STATEMENT}" if number % 3 == 0 else OPEN_STATEMENT
            rows.append(
                {
                    "role": "assistant",
                    "content": text,
                    "state": "complete",
                    "labels": [CLOSED, OPEN],
                    "citations": [label for label in (CLOSED, OPEN) if label in text],
                    "followups": [f"Follow-up {number}?"],
                }
            )
        made = Message.objects.bulk_create(
            Message(conversation=self.conversation, position=position, **row)
            for position, row in enumerate(rows)
        )
        passages = {each.pk: Passage.objects.get(document=each).pk for each, *_ in given}
        Source.objects.bulk_create(
            Source(
                message=answer,
                document=document,
                document_version=1,
                passage_id=passages[document.pk],
                rank=rank,
                label=label,
                title=document.title,
                content=words,
                score=0.9,
                found_by="both",
            )
            for answer in made[1::2]
            for rank, (document, label, words) in enumerate(given, start=1)
        )
        self.last = len(rows) - 1
        self.address = f"/c/{self.conversation.pk}/"

    def questions_on(self, url):
        response = self.client.get(url)
        self.assertEqual(response.status_code, 200, url)
        text = response.content.decode()
        links = {words: address.replace("&amp;", "&") for address, words in LINK.findall(text)}
        return [int(position) for position in SHOWN.findall(text)], links, text

    def walk(self, url):
        """The positions of all questions, from the newest page back."""
        found, links, _ = self.questions_on(url)
        while "Earlier questions" in links:
            earlier, links, _ = self.questions_on(url + links["Earlier questions"].partition("#")[0])
            self.assertLessEqual(len(earlier), TURNS_SHOWN)
            found = [*earlier, *found]
        return found


@pytest.mark.slow
class OwnPageTests(LongConversationCase):
    def setUp(self):
        super().setUp()
        self.client.force_login(self.owner)

    def test_a_page_has_the_newest_turns_and_leads_to_all_others_without_a_script(self):
        found, links, text = self.questions_on(self.address)
        self.assertEqual(found, list(range(2 * (TURNS - TURNS_SHOWN), 2 * TURNS, 2)))
        self.assertEqual([*links], ["Earlier questions"])
        self.assertIn('id="composer"', text)
        self.assertEqual(self.walk(self.address), list(range(0, 2 * TURNS, 2)))

    def test_an_earlier_page_has_no_question_box_and_leads_to_the_newest(self):
        found, links, text = self.questions_on(f"{self.address}?at=7")
        self.assertEqual(found, [0, 2, 4, 6])
        self.assertNotIn('id="composer"', text)
        self.assertNotIn('id="latest"', text)
        later, links, _ = self.questions_on(self.address + links["Later questions"].partition("#")[0])
        self.assertEqual(later[0], 8)
        self.assertIn("To the latest questions", links)

    def test_a_source_and_a_form_of_an_old_answer_open_on_its_page(self):
        for query in ("source=3.1", "rating=3", "at=3", "source=3.1&at=200"):
            found, _, _ = self.questions_on(f"{self.address}?{query}")
            self.assertIn(2, found, query)
        for query in ("at=", "at=x", "at=-1", "at=99999999999999999999", "at=٣"):
            found, _, _ = self.questions_on(f"{self.address}?{query}")
            self.assertEqual(found[-1], 2 * (TURNS - 1), query)

    def test_a_search_leads_to_the_page_of_its_hit(self):
        for row in self.conversation.messages.all():
            row.search = recording.search_vector(self.owner.pk, row.content)
            row.save(update_fields=["search"])
        text = self.client.get("/search/?q=Question+number+3").content.decode()
        url = re.search(rf'href="({self.address}[^"]*)"', text.partition("<main")[2])[1]
        position = int(re.search(r"#[qm]-(\d+)", url)[1])
        found, _, _ = self.questions_on(url.replace("&amp;", "&").partition("#")[0])
        self.assertIn(position - position % 2, found)

    def test_a_rating_of_an_old_answer_returns_to_its_page(self):
        response = self.client.post(f"{self.address}m/3/feedback", {"rating": "good"})
        self.assertEqual(response.url, f"{self.address}?rating=3#feedback-3")
        answer = self.client.post(
            f"{self.address}m/3/feedback", {"rating": "bad"}, headers={"Accept": "application/json"}
        )
        self.assertIn("Bad answer", answer.json()["end"])


@pytest.mark.slow
class SharedPageTests(LongConversationCase):
    def test_a_shared_page_has_the_newest_turns_and_leads_to_all_others(self):
        self.share()
        found, links, text = self.questions_on(self.url)
        self.assertEqual(len(found), TURNS_SHOWN)
        self.assertEqual([*links], ["Earlier questions"])
        self.assert_clean(text)
        self.assertEqual(self.walk(self.url), list(range(0, 2 * TURNS, 2)))
        for at in range(1, 2 * TURNS, 40):
            self.assert_clean(self.page(f"?at={at}"))

    def test_a_source_of_an_old_answer_opens(self):
        self.share()
        found, _, text = self.questions_on(f"{self.url}?source=3.1")
        self.assertIn(2, found)
        self.assertIn(OPEN_WORDS, text)
        self.assertEqual(self.client.get(f"{self.url}source/3.1/").status_code, 200)
        self.assertEqual(self.client.get(f"{self.url}source/1.1/").status_code, 404)


@pytest.mark.slow
class ShareFormTests(LongConversationCase):
    def setUp(self):
        super().setUp()
        self.client.force_login(self.owner)

    def test_the_form_takes_no_query_for_each_message(self):
        self.client.get(f"{self.address}share")
        with CaptureQueriesContext(connection) as queries:
            self.client.get(f"{self.address}share")
        self.assertLess(len(queries), 60)

    def test_the_form_offers_the_newest_answers_and_the_one_that_is_asked_for(self):
        with patch("chat.portal.shares.MAX_OFFERED", 10):
            text = self.client.get(f"{self.address}share?answer=5").content.decode()
        offered = re.findall(r'<option value="(\d+)"( selected)?>Only the answer', text)
        self.assertEqual(len(offered), 11)
        self.assertEqual(offered[0], (str(self.last), ""))
        self.assertEqual(offered[-1], ("5", " selected"))


@pytest.mark.slow
class CostTests(LongConversationCase):
    turns, few = 400, 40

    def seconds(self, visitor, address):
        """The least CPU time of three requests for a page."""
        self.client.force_login(visitor)
        self.client.get("/")
        measured = []
        for _ in range(3):
            begin = time.process_time()
            self.assertEqual(self.client.get(address).status_code, 200)
            measured.append(time.process_time() - begin)
        return min(measured)

    def test_a_page_costs_the_same_and_a_share_in_proportion_to_the_length(self):
        self.share()
        pages = [(self.owner, self.address), (self.owner, f"{self.address}?at=20")]
        shares = [(self.reader, self.url), (self.owner, f"{self.address}share")]
        of_many = [self.seconds(*page) for page in [*pages, *shares]]
        Message.objects.filter(conversation=self.conversation, position__gte=2 * self.few).delete()
        of_few = [self.seconds(*page) for page in [*pages, *shares]]
        most = [3, 3, 2 * self.turns / self.few, 2 * self.turns / self.few]
        for page, many, few, times in zip([*pages, *shares], of_many, of_few, most, strict=True):
            self.assertLess(many, times * few, page)
