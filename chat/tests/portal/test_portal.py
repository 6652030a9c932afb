"""The pages of the portal, without JavaScript: what the owner sees, and that nobody else sees anything."""

import re
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.test import TestCase
from django.utils import timezone

from chat.errors import Refused
from chat.llm.chat_model import NOTHING_FITS
from chat.models import Run
from chat.portal.source_panel import panel_of
from chat.statements import Statement, to_rows
from chat.tests.conversations import LABEL, WORDS, answered
from history.models import Conversation, Message
from history.tally import UNSURE
from ingestion.access.lists import (
    Audience,
    access_list_for,
    set_audience,
)
from ingestion.models import Document, FormerVersion
from ingestion.tests.factories import command_principal, make_document, make_user

START = "How many days of leave may employees carry over?"


def text_of(response):
    return response.content.decode()


def compact_text_of(response):
    """The page without the indentation of its templates."""
    return re.sub(r">\s+<", "><", " ".join(text_of(response).split()))


class PortalCase(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.user = make_user("asker")
        cls.other = make_user("other")
        cls.document = make_document(
            "guide.md", title="Leave guide", everyone=True, folder="People", questions=[START]
        )
        cls.conversation, cls.answer = answered(cls.user, cls.document)
        cls.url = f"/c/{cls.conversation.pk}/"

    def setUp(self):
        self.client.force_login(self.user)
        starting = patch("chat.runs.start")
        self.start = starting.start()
        self.addCleanup(starting.stop)


class PageTests(PortalCase):
    def test_the_new_page_counts_what_one_may_read_and_offers_a_question(self):
        page = compact_text_of(self.client.get("/"))
        self.assertIn("the 1 document you can read", page)
        self.assertIn("No language model is connected, so answers quote the documents word for word.", page)
        self.assertIn(START, page)

    def test_documents_with_the_same_question_suggest_it_once(self):
        make_document("again.md", title="Leave guide", everyone=True, questions=[START])
        page = text_of(self.client.get("/"))
        self.assertEqual(page.count(f"{START}</"), 1)

    def test_a_question_that_the_documents_do_not_answer_is_not_suggested(self):
        for question in ("Which quark is heaviest?", "How long is the winter discount on boots?"):
            name, texts = f"{len(question)}.md", ["Boots are cleaned weekly."]
            make_document(name, texts, everyone=True, questions=[question])
            self.assertNotIn(question, text_of(self.client.get("/")))

    def test_what_only_others_may_read_suggests_no_question(self):
        hidden = "How often are boots cleaned?"
        make_document("boots.md", ["Boots are cleaned weekly."], owner=self.other, questions=[hidden])
        self.assertNotIn(hidden, text_of(self.client.get("/")))
        make_document("all-boots.md", ["Boots are cleaned weekly."], everyone=True, questions=[hidden])
        self.assertIn(hidden, text_of(self.client.get("/")))

    def test_somebody_who_may_read_nothing_is_told_so(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.other.pk})))
        page = text_of(self.client.get("/"))
        self.assertIn("There is nothing to search yet.", page)
        self.assertNotIn("Leave guide", page)

    def test_who_may_read_nothing_yet_is_told_how_many_documents_are_being_read(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.other.pk})))
        for number in range(2):
            row = make_document(f"first{number}.md", everyone=True)
            Document.objects.filter(pk=row.pk).update(version=0, passage_count=0, status="waiting")
        page = text_of(self.client.get("/"))
        self.assertIn("2 documents are being read.", page)
        self.assertIn("live_page.js", page)
        self.assertNotIn("There is nothing to search yet.", page)
        Document.objects.filter(name="first0.md").update(version=1, passage_count=1, status="ready")
        page = text_of(self.client.get("/"))
        self.assertIn("Answers are drawn from the 1 document you can read", page)
        self.assertNotIn("live_page.js", page)

    def test_a_conversation_shows_question_answer_chip_and_source(self):
        page = text_of(self.client.get(self.url))
        self.assertIn("May I carry leave over?", page)
        self.assertIn('aria-label="1: Leave guide"', page)
        self.assertIn("Searched 1 document, read 1 passage from 1", text_of(self.with_thoughts()))
        self.assertNotIn('http-equiv="refresh"', page)

    def test_closest_passages_are_not_ticked_as_confirmed(self):
        text = f"{WORDS} [{LABEL}]."
        stored = Message.objects.filter(pk=self.answer.pk)
        for notice, ticked in (("", True), (f"{UNSURE}\n\n", False)):
            content = f"{notice}{text}"
            stated = Statement(len(notice), len(content), (LABEL,), "quoted")
            stored.update(content=content, verification=to_rows([stated]))
            page = text_of(self.client.get(self.url))
            self.assertEqual("All citations found in the text" in page, ticked, notice)

    def with_thoughts(self):
        Message.objects.filter(pk=self.answer.pk).update(
            thoughts=[{"title": "Original user query", "description": "May I?", "props": None}]
        )
        return self.client.get(self.url)

    def test_a_running_answer_refreshes_the_page_and_can_be_stopped(self):
        Message.objects.filter(pk=self.answer.pk).update(state="streaming", content="")
        page = compact_text_of(self.client.get(self.url))
        self.assertIn(f'<noscript><meta http-equiv="refresh" content="2; url={self.url}"></noscript>', page)
        self.assertIn("<title>Answering… – Carrying over leave", page)
        self.assertIn('aria-busy="true"', page)
        self.assertNotIn('http-equiv="refresh"', text_of(self.client.get(f"{self.url}?rating=1")))

    def test_each_end_has_its_words_and_its_button(self):
        for state, words, button in (
            ("stopped", "You stopped this answer.", "Answer again"),
            ("interrupted", "The answer was interrupted. The partial answer is kept.", "Answer again"),
            ("failed", "Your question is saved.", "Try again"),
            ("blocked", "blocked by the content filter.", ""),
        ):
            Message.objects.filter(pk=self.answer.pk).update(state=state, error_code="upstream_timeout")
            page = text_of(self.client.get(self.url))
            self.assertIn(words, page)
            self.assertIn(button, page)

    def test_an_answer_cut_at_the_limit_says_so(self):
        Message.objects.filter(pk=self.answer.pk).update(finish_reason="length")
        self.assertIn("The answer reached its length limit.", text_of(self.client.get(self.url)))

    def test_the_button_that_reads_aloud_names_the_language_of_the_answer(self):
        german = "Bis zu fünf Tage können in das nächste Jahr übertragen werden, aber nicht mehr."
        for text, tag in {german: "de", "It must be used by the end of March.": "en", "42": ""}.items():
            Message.objects.filter(role="assistant").update(content=text)
            self.assertContains(self.client.get(self.url), f'data-aloud="{tag}"')

    def test_a_reader_of_another_language_is_told_the_language_of_the_documents(self):
        german = text_of(self.client.get(self.url, headers={"Accept-Language": "de"}))
        self.assertIn("Die zitierten Dokumente sind auf Englisch.", german)
        self.assertNotIn("The cited documents are in", text_of(self.client.get(self.url)))

    def test_hostile_words_are_shown_and_not_run(self):
        hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
        Conversation.objects.filter(pk=self.conversation.pk).update(title=hostile)
        Message.objects.filter(conversation=self.conversation).update(content=hostile, followups=[hostile])
        type(self.document).objects.filter(pk=self.document.pk).update(title=hostile, folder=hostile)
        self.answer.sources.update(title=hostile, heading=hostile, content=hostile)
        for path in (self.url, f"{self.url}?source=1.1", "/search/?q=script", "/", f"{self.url}rename"):
            page = text_of(self.client.get(path))
            self.assertNotIn("<script>alert", page)
            self.assertNotIn("<img", page)

    def test_no_page_has_a_style_attribute_or_an_inline_script(self):
        for path in ("/", self.url, f"{self.url}?source=1.1&view=support", "/search/"):
            page = text_of(self.client.get(path))
            self.assertIsNone(re.search(r"<[^>]+ (style|on\w+)=", page))
            self.assertIsNone(re.search(r"<script(?![^>]* src=)", page))

    def test_conversations_are_never_cached(self):
        self.assertIn("no-store", self.client.get(self.url).headers["Cache-Control"])

    def test_the_sidebar_has_the_callers_conversations_only(self):
        self.client.force_login(self.other)
        self.assertNotIn("Carrying over leave", text_of(self.client.get("/")))

    def test_the_conversation_page_needs_few_queries(self):
        self.client.get(self.url)  # the first page of a session also writes down that it is in use
        # Session, user, conversation, questions, messages, sources, branches, words, allowance, sidebar,
        # projects, new shares, documents.
        with self.assertNumQueries(13):
            self.client.get(self.url)


class AskTests(PortalCase):
    def test_a_first_question_opens_a_conversation(self):
        response = self.client.post("/", {"question": "How many days?\r\nAnd when?", "key": "k" * 32})
        run = Run.objects.get()
        self.assertEqual(response.status_code, 303)
        self.assertEqual(response.headers["Location"], f"/c/{run.conversation_id}/#latest")
        self.assertEqual(run.question.content, "How many days?\nAnd when?")
        self.start.assert_called_once()

    def test_the_module_is_told_where_to_go(self):
        response = self.client.post(
            "/", {"question": "How?", "key": "k" * 32}, headers={"Accept": "application/json"}
        )
        run = Run.objects.get()
        self.assertEqual(response.json(), {"url": f"/c/{run.conversation_id}/", "run": str(run.pk)})

    def test_a_form_sent_twice_asks_once(self):
        for _ in range(2):
            self.client.post("/", {"question": "How?", "key": "k" * 32})
        self.assertEqual(Run.objects.count(), 1)

    def test_the_same_form_with_other_words_asks_anew(self):
        self.client.post("/", {"question": "How?", "key": "k" * 32})
        response = self.client.post("/", {"question": "Why?", "key": "k" * 32})
        self.assertEqual(response.status_code, 303)
        self.assertEqual(Run.objects.count(), 2)

    def test_a_refused_question_stays_in_the_box_with_the_reason(self):
        for question, words in (
            ("  ", "The message is empty."),
            ("x" * 32_001, "longer than 32,000 characters"),
            ("a\x00b", "</textarea>"),
        ):
            for url in ("/", f"{self.url}ask"):
                response = self.client.post(url, {"question": question})
                self.assertEqual(response.status_code, 400)
                self.assertIn(words, text_of(response))
                self.assertIn(question.replace("\x00", "\ufffd"), text_of(response))
        self.assertEqual(Run.objects.count(), 0)

    def test_the_module_gets_the_reason_as_json(self):
        response = self.client.post("/", {"question": ""}, headers={"Accept": "application/json"})
        self.assertEqual(response.status_code, 400)
        self.assertEqual(response.json()["code"], "message_empty")

    def test_a_key_that_no_page_sends_is_not_used(self):
        for key in ("\x00", "x" * 500, "\ud800".encode("utf-8", "surrogatepass"), "é" * 20):
            self.assertEqual(self.client.post("/", {"question": "How?", "key": key}).status_code, 303)

    def test_a_question_about_one_document_keeps_its_scope_in_the_conversation(self):
        scope = f"document:{self.document.public_id}"
        chosen = f'<option value="{scope}" selected>Only “Leave guide”</option>'
        self.assertIn(f"/?scope={scope}", text_of(self.client.get(f"/documents/{self.document.public_id}/")))
        self.assertIn(chosen, text_of(self.client.get(f"/?scope={scope}")))
        self.client.post("/", {"question": "How?", "scope": scope})
        opened = Conversation.objects.latest("created_at")
        self.assertIn(chosen, text_of(self.client.get(f"/c/{opened.pk}/")))
        Run.objects.update(finished_at=timezone.now())
        self.client.post(f"/c/{opened.pk}/ask", {"question": "And when?"})
        self.client.post(f"/c/{opened.pk}/ask", {"question": "And why?", "scope": "own"})
        scopes = [run.options["scope"] for run in Run.objects.order_by("created_at")]
        self.assertEqual(scopes, [scope, scope])  # the third was refused, for the second is being answered
        Run.objects.update(finished_at=timezone.now())
        self.client.post(f"/c/{opened.pk}/ask", {"question": "And why?", "scope": "own"})
        opened.refresh_from_db()
        self.assertEqual(opened.scope, "own")

    def test_a_scope_names_nothing_that_is_closed_and_what_is_no_scope_is_none(self):
        closed = make_document("board.md", title="Board minutes", users=[self.other], folder="Minutes")
        for scope, words in (
            (f"document:{closed.public_id}", "Only a document that you cannot read"),
            (f"document:{uuid4()}", "Only a document that you cannot read"),
            ("folder:Minutes", "Only a folder with nothing that you can read"),
            ("folder:People", "Only the folder “People”"),
        ):
            page = text_of(self.client.get("/", {"scope": scope}))
            self.assertIn(words, page)
            self.assertNotIn("Board minutes", page)
        for scope in ("everything", "document:1", "\x00"):
            self.assertIn('<option value="all" selected>', text_of(self.client.get("/", {"scope": scope})))

    def test_an_answer_says_where_it_was_searched(self):
        step = {"title": "Generated search query", "description": "leave", "props": {"scope": "own"}}
        Message.objects.filter(pk=self.answer.pk).update(thoughts=[step])
        self.assertIn("in what you added", compact_text_of(self.client.get(self.url)))

    def test_a_second_question_during_an_answer_is_refused_and_kept(self):
        self.client.post(f"{self.url}ask", {"question": "One?"})
        response = self.client.post(f"{self.url}ask", {"question": "Two?"})
        self.assertEqual(response.status_code, 409)
        self.assertIn("Two?</textarea>", text_of(response))
        self.assertEqual(self.client.get(f"{self.url}ask")["Location"], f"{self.url}#latest")

    def test_stop_and_again(self):
        self.client.post(f"{self.url}ask", {"question": "One?"})
        run = Run.objects.get()
        self.assertEqual(self.client.post(f"{self.url}stop").status_code, 303)
        self.assertTrue(Run.objects.get().stop_requested)
        Run.objects.update(finished_at=run.created_at)
        Message.objects.filter(pk=run.answer_id).update(state="stopped")
        response = self.client.post(f"{self.url}m/{run.answer.position}/again")
        self.assertEqual(response.status_code, 303)
        self.assertEqual(Run.objects.count(), 2)

    def test_a_stop_while_the_conversation_is_deleted_is_no_error(self):
        self.client.post(f"{self.url}ask", {"question": "One?"})
        for address in ("stop", "delete"):
            with patch(
                "chat.portal.conversation_actions.runs.request_stop", side_effect=Refused("not_found")
            ):
                self.assertEqual(self.client.post(f"{self.url}{address}").status_code, 303)


class ChangeTests(PortalCase):
    def test_rename(self):
        self.client.post(f"{self.url}rename", {"title": "  New \n name "})
        self.conversation.refresh_from_db()
        self.assertEqual(self.conversation.title, "New name")

    def test_a_title_without_words_is_refused(self):
        self.assertEqual(self.client.post(f"{self.url}rename", {"title": " "}).status_code, 400)

    def test_delete_asks_first_and_can_be_undone(self):
        self.assertIn("Delete this conversation?", text_of(self.client.get(f"{self.url}delete")))
        page = self.client.post(f"{self.url}delete", follow=True)
        self.assertIn("Conversation deleted.", text_of(page))
        self.assertIn(f'action="{self.url}undo"', text_of(page))
        self.assertEqual(self.client.get(self.url).status_code, 404)
        self.assertEqual(self.client.post(f"{self.url}undo").status_code, 303)
        self.assertEqual(self.client.get(self.url).status_code, 200)

    def test_export(self):
        response = self.client.get(f"{self.url}export.md")
        self.assertEqual(response.headers["Content-Type"], "text/markdown; charset=utf-8")
        self.assertIn('filename="carrying-over-leave.md"', response.headers["Content-Disposition"])
        self.assertIn("## May I carry leave over?\n\nFive days [1].\n\n1. Leave guide", text_of(response))

    def test_one_answer_is_exported_for_the_clipboard(self):
        response = self.client.get(f"{self.url}export.md?answer={self.answer.position}")
        self.assertEqual(text_of(response), "Five days [1].\n\n1. Leave guide\n")
        for wrong in ("0", "99", "x", "\u0661", 20 * "9"):
            self.assertEqual(self.client.get(f"{self.url}export.md?answer={wrong}").status_code, 404, wrong)


class BroughtAlongTests(PortalCase):
    def test_an_answer_that_a_program_wrote_cannot_be_answered_again(self):
        self.assertIn("Answer again", text_of(self.client.get(self.url)))
        Message.objects.filter(pk=self.answer.pk).update(client_id="a", imported=True)
        self.assertNotIn("Answer again", text_of(self.client.get(self.url)))


class SearchTests(PortalCase):
    def test_titles_and_text_are_found_and_marked(self):
        self.assertIn('<span class="hit">Carrying</span>', text_of(self.client.get("/search/?q=carrying")))
        self.assertIn('<span class="hit">Five days</span>', text_of(self.client.get("/search/?q=five+days")))

    def test_an_excerpt_names_no_source(self):
        self.assertNotIn("guide.md", text_of(self.client.get("/search/?q=five+days")))

    def test_signs_of_patterns_are_only_signs(self):
        self.assertIn("No conversation has these words", text_of(self.client.get("/search/?q=%25")))
        self.assertIn("No conversation has these words", text_of(self.client.get("/search/?q=C_rrying")))

    def test_other_peoples_are_not_found(self):
        self.client.force_login(self.other)
        self.assertNotIn(str(self.conversation.pk), text_of(self.client.get("/search/?q=carrying")))

    def test_odd_queries_do_no_harm(self):
        for query in ("%00", "a" * 500, "%F0%9F%98%80", "page=x&page=-1", "&page=99999999999999999999"):
            self.assertEqual(self.client.get(f"/search/?q={query}").status_code, 200)


class PanelTests(PortalCase):
    def test_the_passage_has_the_cited_words_marked_and_says_why_one_sees_it(self):
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn("<mark>Employees</mark> may carry over", page)
        self.assertIn("Everyone who signs in may read it.", page)
        self.assertNotIn("<html", page)

    def test_the_deep_link_is_the_whole_page(self):
        page = text_of(self.client.get(f"{self.url}?source=1.1&view=support"))
        self.assertIn('<html lang="en"', page)
        self.assertIn("match 90 of 100", page)

    def test_each_view_is_there(self):
        for view in ("passage", "page", "thoughts", "support", "nonsense", ""):
            self.assertEqual(self.client.get(f"{self.url}source/1.1/?view={view}").status_code, 200)
        self.assertEqual(self.client.get(f"{self.url}source/1.r1/").status_code, 200)

    def test_of_the_passages_of_a_page_those_with_the_quoted_words_are_cited(self):
        cited = self.answer.sources.get()
        for rank, quotes in ((2, []), (3, [[0, 5]])):
            cited.pk, cited.rank, cited.quotes = None, rank, quotes
            cited._state.adding = True
            cited.content = f"Other words {rank}."
            cited.save()
        Message.objects.filter(pk=self.answer.pk).update(labels=3 * self.answer.labels)
        page = compact_text_of(self.client.get(f"{self.url}source/1.1/?view=support"))
        self.assertIn("2 are cited.", page)
        self.assertEqual(page.count("</svg> Cited"), 2)
        self.assertEqual(page.count("Same place as a cited one"), 1)
        self.assertIn('data-source="1.1"', page)
        for rank in (2, 3):
            self.assertIn(f'data-source="1.r{rank}"', page)

    def test_where_nothing_answers_the_owners_of_the_nearest_documents_are_named(self):
        owner = make_user("keeper", first_name="Kim", last_name="Keeper")
        closed = make_document("closed.md", title="Closed plan", owner=make_user("withheld"))
        Document.objects.filter(pk=self.document.pk).update(owner=owner)
        source = self.answer.sources.get()
        source.pk, source.rank, source.document = None, 2, closed
        source._state.adding = True
        source.save()
        Message.objects.filter(pk=self.answer.pk).update(
            content=NOTHING_FITS, citations=[], labels=[LABEL, "closed.md"]
        )
        page = compact_text_of(self.client.get(self.url))
        self.assertIn(f'href="/documents/{self.document.public_id}/"><bdi>Leave guide</bdi></a>', page)
        self.assertIn("owner: <bdi>Kim Keeper</bdi>", page)
        for word in ("Closed plan", "withheld"):
            self.assertNotIn(word, page)
        self.assertIn("owner: <bdi>Kim Keeper</bdi>", compact_text_of(self.client.get("/documents/")))

    def test_a_table_joined_of_several_passages_is_shown_once(self):
        rows = [f"Years: {number}; Weeks: {10 * number}" for number in range(1, 5)]
        document = make_document("pay.md", [("pay", None, "", row) for row in rows], everyone=True)
        conversation, answer = answered(self.user, document)
        passages = list(document.passages.all())
        answer.sources.update(passage_id=passages[1].pk, content="\n".join(rows[1:3]), quotes=[[7, 8]])
        url = f"/c/{conversation.pk}/source/1.1/"
        page = compact_text_of(self.client.get(f"{url}?view=page"))
        self.assertEqual([page.count(f"<td>{10 * number}</td>") for number in range(1, 5)], [1, 1, 1, 1])
        panel = panel_of(command_principal(self.user), conversation, "1.1", "passage")
        self.assertEqual((panel.before, panel.after), ([], []))
        (table,) = panel.parts
        self.assertEqual([row[0][0].text for row in table.rows], ["1", "2", "3", "4"])
        self.assertEqual([is_marked for is_marked, _ in table.named_rows], [False, True, False, False])
        with patch("chat.portal.source_panel.MAX_TABLE", 70):
            panel = panel_of(command_principal(self.user), conversation, "1.1", "passage")
            self.assertEqual([part.rows[0][0][0].text for part in (*panel.before, *panel.after)], ["1", "4"])

    def test_what_may_no_longer_be_read_shows_neither_title_nor_text(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.other.pk})))
        for path in (self.url, f"{self.url}?source=1.1", f"{self.url}?source=1.1&view=support",
                     f"{self.url}?source=1.1&view=page", f"{self.url}export.md"):  # fmt: skip
            page = text_of(self.client.get(path))
            self.assertNotIn("Leave guide", page)
            self.assertNotIn(WORDS, page)
            self.assertNotIn(LABEL, page)
        self.assertEqual(self.client.get(f"{self.url}source/1.r1/").status_code, 404)

    def test_nor_does_a_deleted_document(self):
        thoughts = [{"title": "Prompt", "description": [f"Five days [{LABEL}]."], "props": None}]
        Message.objects.filter(pk=self.answer.pk).update(thoughts=thoughts)
        self.assertIn(LABEL, text_of(self.client.get(f"{self.url}?source=1.1&view=thoughts")))
        self.document.delete()
        self.assertNotIn(LABEL, text_of(self.client.get(f"{self.url}?source=1.1&view=thoughts")))
        page = text_of(self.client.get(f"{self.url}?source=1.1"))
        self.assertIn("cite gone", page)
        self.assertIn("The text above was written when you could.", page)
        self.assertNotIn("Leave guide", page)

    def test_an_older_version_is_told(self):
        type(self.document).objects.filter(pk=self.document.pk).update(version=2)
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn("There is a newer one.", page)
        self.assertNotIn("/changes/", page)

    def test_an_older_version_whose_text_is_kept_leads_to_what_changed(self):
        FormerVersion.objects.create(
            document=self.document,
            access_list=self.document.access_list,
            since=1,
            version=1,
            content="Five days.",
            size=10,
        )
        type(self.document).objects.filter(pk=self.document.pk).update(version=2)
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn(f"/documents/{self.document.public_id}/changes/?from=1", page)
        FormerVersion.objects.update(access_list=access_list_for(Audience(), None))
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn("There is a newer one.", page)
        self.assertNotIn("/changes/", page)

    @pytest.mark.slow
    def test_places_that_do_not_exist_are_not_found(self):
        for place in ("1.2", "0.1", "9.1", "1.0", "x", "1.r9", "1", "99999999999.1", "1.99999999999"):
            self.assertEqual(self.client.get(f"{self.url}source/{place}/").status_code, 404, place)
            self.assertEqual(self.client.get(f"{self.url}?source={place}").status_code, 404, place)


@pytest.mark.slow
class StrangerTests(PortalCase):
    GET = ("", "source/1.1/", "rename", "delete", "export.md", "?source=1.1")
    POST = ("ask", "stop", "m/1/again", "rename", "pin", "archive", "delete", "undo")

    def requests(self, conversation_id):
        for path in self.GET:
            yield path, self.client.get(f"/c/{conversation_id}/{path}")
        for path in self.POST:
            yield path, self.client.post(f"/c/{conversation_id}/{path}", {"question": "?", "title": "x"})

    def test_another_persons_conversation_is_as_one_that_does_not_exist(self):
        self.client.force_login(self.other)
        unknown = dict(self.requests(uuid4()))
        for path, response in self.requests(self.conversation.pk):
            self.assertEqual(response.status_code, 404, path)
            self.assertEqual(response.content, unknown[path].content, path)
        self.conversation.refresh_from_db()
        self.assertEqual(
            (self.conversation.title, self.conversation.deleted_at), ("Carrying over leave", None)
        )

    def test_whoever_is_not_signed_in_is_sent_to_the_door_and_back(self):
        self.client.logout()
        for path, response in self.requests(self.conversation.pk):
            self.assertEqual(response.status_code, 302, path)
            self.assertTrue(response.headers["Location"].startswith("/accounts/sign-in/?next=/c/"), path)
        for path in ("/", "/search/?q=x"):
            self.assertEqual(self.client.get(path).status_code, 302)
