"""The pages of the portal without JavaScript: what the owner sees, and that others see nothing."""

import re
from unittest.mock import patch
from uuid import uuid4

import pytest

from chat.models import VerifiedAnswer
from chat.portal import views
from chat.portal.exported_page import as_page
from chat.statements import Statement, to_rows
from chat.tests.conversations import LABEL, WORDS, answered
from chat.tests.engine.test_verified_answers import make_verified
from chat.tests.portal_case import START, PortalCase, compact_text_of, text_of
from chatsite.accounts.principal import Principal
from chatsite.http import checked_transfer
from chatsite.templatetags import citing
from history import long_exports, recording
from history.models import Conversation, Message
from history.tally import UNSURE
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user


class PageTests(PortalCase):
    def test_the_start_page_counts_readable_documents_and_offers_a_question(self):
        page = compact_text_of(self.client.get("/"))
        self.assertIn("the 1 document you can read", page)
        self.assertIn("No language model is connected, so answers quote the documents word for word.", page)
        self.assertIn(START, page)

    def test_a_question_of_several_documents_is_suggested_once(self):
        make_document("again.md", title="Leave guide", everyone=True, questions=[START])
        page = text_of(self.client.get("/"))
        self.assertEqual(page.count(f"{START}</"), 1)

    def test_a_question_that_the_documents_do_not_answer_is_not_suggested(self):
        for question in ("Which quark is heaviest?", "How long is the winter discount on boots?"):
            name, texts = f"{len(question)}.md", ["Boots are cleaned weekly."]
            make_document(name, texts, everyone=True, questions=[question])
            self.assertNotIn(question, text_of(self.client.get("/")))

    def test_documents_of_others_suggest_no_question(self):
        hidden = "How often are boots cleaned?"
        make_document("boots.md", ["Boots are cleaned weekly."], owner=self.other, questions=[hidden])
        self.assertNotIn(hidden, text_of(self.client.get("/")))
        make_document("all-boots.md", ["Boots are cleaned weekly."], everyone=True, questions=[hidden])
        self.assertIn(hidden, text_of(self.client.get("/")))

    def test_a_person_without_readable_documents_is_told_so(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.other.pk})))
        page = text_of(self.client.get("/"))
        self.assertIn("There is nothing to search yet.", page)
        self.assertNotIn("Leave guide", page)

    def test_a_person_without_readable_documents_sees_how_many_are_being_read(self):
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

    def test_closest_passages_are_not_marked_as_confirmed(self):
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

    def test_each_kind_of_end_has_its_message_and_its_button(self):
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

    def test_a_truncated_answer_says_so(self):
        Message.objects.filter(pk=self.answer.pk).update(finish_reason="length")
        self.assertIn("The answer reached its length limit.", text_of(self.client.get(self.url)))

    def test_the_button_that_reads_aloud_names_the_language_of_the_answer(self):
        german = "Bis zu fünf Tage können in das nächste Jahr übertragen werden, aber nicht mehr."
        for text, tag in {german: "de", "It must be used by the end of March.": "en", "42": ""}.items():
            Message.objects.filter(role="assistant").update(content=text)
            self.assertContains(self.client.get(self.url), f'data-aloud="{tag}"')

    def test_a_reader_of_another_language_sees_the_language_of_the_documents(self):
        german = text_of(self.client.get(self.url, headers={"Accept-Language": "de"}))
        self.assertIn("Die zitierten Dokumente sind auf Englisch.", german)
        self.assertNotIn("The cited documents are in", text_of(self.client.get(self.url)))

    def test_hostile_text_is_shown_and_not_executed(self):
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

    def test_the_sidebar_has_only_the_callers_conversations(self):
        self.client.force_login(self.other)
        self.assertNotIn("Carrying over leave", text_of(self.client.get("/")))

    def test_the_conversation_page_needs_few_queries(self):
        self.client.get(self.url)  # the first page of a session also records that it is in use
        # Session, user, conversation, questions, messages, sources, branches, words, allowance, sidebar,
        # projects, new shares, documents.
        with self.assertNumQueries(13):
            self.client.get(self.url)


class ChangeTests(PortalCase):
    def test_a_conversation_is_renamed(self):
        self.client.post(f"{self.url}rename", {"title": "  New \n name "})
        self.conversation.refresh_from_db()
        self.assertEqual(self.conversation.title, "New name")

    def test_a_title_without_words_is_refused(self):
        for language, problem in (
            ("en", "A title needs at least one character."),
            ("de", "Ein Titel braucht mindestens ein Zeichen."),
        ):
            refused = self.client.post(
                f"{self.url}rename", {"title": " "}, headers={"Accept-Language": language}
            )
            self.assertContains(refused, problem, status_code=400)

    def test_delete_asks_first_and_can_be_undone(self):
        self.assertIn("Delete this conversation?", text_of(self.client.get(f"{self.url}delete")))
        page = self.client.post(f"{self.url}delete", follow=True)
        self.assertIn("Conversation deleted.", text_of(page))
        self.assertIn(f'action="{self.url}undo"', text_of(page))
        self.assertEqual(self.client.get(self.url).status_code, 404)
        self.assertEqual(self.client.post(f"{self.url}undo").status_code, 303)
        self.assertEqual(self.client.get(self.url).status_code, 200)

    def test_the_url_without_its_trailing_slash_redirects_to_the_page(self):
        address = self.url.rstrip("/")
        found = self.client.get(f"{address}?source=2.1&view=page")
        self.assertEqual((found.status_code, found["Location"]), (301, f"{self.url}?source=2.1&view=page"))
        self.assertEqual(self.client.get(address)["Location"], self.url)
        self.assertEqual(self.client.post(address).status_code, 405)
        self.client.force_login(self.other)
        self.assertEqual(self.client.get(address).status_code, 404)

    def test_a_conversation_is_exported(self):
        response = self.client.get(f"{self.url}export.md")
        self.assertEqual(response.headers["Content-Type"], "text/markdown; charset=utf-8")
        self.assertIn('filename="carrying-over-leave.md"', response.headers["Content-Disposition"])
        self.assertIn(
            "## May I carry leave over?\n\nFive days [1].\n\n### Sources\n\n1. Leave guide", text_of(response)
        )

    def test_the_exported_page_has_the_same_content_without_scripts_or_external_files(self):
        hostile = (
            f"{WORDS} [{LABEL}].\n\n<script>alert(1)</script> ![x](https://a.example/i.png)"
            " [a](javascript:alert(1)) [b](https://b.example/)\n\n| A |\n|---|\n| 1 |"
        )
        Message.objects.filter(pk=self.answer.pk).update(content=hostile)
        response = self.client.get(f"{self.url}export.html")
        self.assertEqual(response.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn(
            'attachment; filename="carrying-over-leave.html"', response.headers["Content-Disposition"]
        )
        page = text_of(response)
        self.assertIn("<h2>May I carry leave over?</h2>", page)
        self.assertIn(f"<p>{WORDS} [1].</p>", page)
        self.assertIn("<h3>Sources</h3>", page)
        self.assertIn("<li>Leave guide</li>", page)
        self.assertIn('<th scope="col">A</th>', page)
        self.assertIn("<td>1</td>", page)
        self.assertIn('<a href="https://b.example/"', page)
        for gone in ("<script", "<img", 'javascript:alert(1)"', 'href="javascript', "src="):
            self.assertNotIn(gone, page)
        self.assertEqual(self.client.get(f"{self.url}export.html?answer=99").status_code, 404)
        self.client.logout()
        self.assertEqual(self.client.get(f"{self.url}export.html").status_code, 302)

    def test_an_export_begins_again_if_a_right_is_withdrawn_while_it_is_rendered(self):
        def render(title, parts):
            set_audience(Document.objects.get(), Audience())
            return as_page(title, parts)

        Document.objects.update(owner=make_user("keeper"))
        with patch.object(checked_transfer, "CHECK_SECONDS", -1):
            self.assertIn("Leave guide", text_of(self.client.get(f"{self.url}export.html")))
            with patch.object(views, "as_page", render):
                response = self.client.get(f"{self.url}export.html")
        self.assertEqual(
            (response.status_code, response.headers["Location"]), (303, f"{self.url}export.html")
        )
        self.assertNotIn("Leave guide", text_of(self.client.get(response.headers["Location"])))

    def test_one_long_export_is_rendered_at_a_time_and_short_ones_do_not_wait(self):
        long = [f"{self.url}export.{ending}" for ending in ("html", "md")]
        short = f"{self.url}export.md?answer={self.answer.position}"
        with long_exports._running, patch.object(long_exports, "WAIT_SECONDS", 0.01):
            for path in long:
                self.assertEqual(self.client.get(path).status_code, 200)
            with patch.object(long_exports, "LONG_MESSAGES", 1):
                refused = [self.client.get(path) for path in long]
                self.assertEqual(self.client.get(short).status_code, 200)
            with patch.object(long_exports, "LONG_BYTES", 10):
                refused += [self.client.get(path) for path in long]
        for response in refused:
            self.assertEqual(response.status_code, 503)
            self.assertTrue(int(response.headers["Retry-After"]) > 0)
        with patch.object(long_exports, "LONG_MESSAGES", 1):
            for path in long:
                self.assertEqual(self.client.get(path).status_code, 200)

    def test_an_unclosed_code_block_ends_with_its_message_in_the_exported_page(self):
        said = [("user", "First?"), ("assistant", "```\ncode"), ("user", "Second?"), ("assistant", "*So.*")]
        saved = [{"id": str(n), "role": role, "content": text} for n, (role, text) in enumerate(said)]
        new = self.client.post("/chat-history", {"title": "Code"}, content_type="application/json").json()[
            "id"
        ]
        path = f"/chat-history/{new}/messages"
        self.client.put(path, {"messages": saved}, content_type="application/json")
        page = text_of(self.client.get(f"/c/{new}/export.html"))
        self.assertIn("<h2>Second?</h2>", page)
        self.assertIn("<em>So.</em>", page)

    def test_deleting_a_conversation_says_that_attached_files_stay(self):
        words = "Files that you attached stay in your documents."
        self.assertIn(words, text_of(self.client.get(self.url)))
        self.assertIn(words, text_of(self.client.get(f"{self.url}delete")))

    def test_the_exported_page_links_to_the_origin_of_a_document(self):
        Document.objects.update(source_url="https://wiki.example/leave?a=1&b=2")
        page = text_of(self.client.get(f"{self.url}export.html"))
        self.assertIn('<li>Leave guide: <a href="https://wiki.example/leave?a=1&amp;b=2"', page)

    def test_one_answer_is_exported_for_the_clipboard(self):
        response = self.client.get(f"{self.url}export.md?answer={self.answer.position}")
        self.assertEqual(text_of(response), "Five days [1].\n\n### Sources\n\n1. Leave guide\n")
        for wrong in ("0", "99", "x", "\u0661", 20 * "9"):
            self.assertEqual(self.client.get(f"{self.url}export.md?answer={wrong}").status_code, 404, wrong)


class CitingTests(PortalCase):
    """How many conversations cite a document, on the page that changes its readers."""

    def shown(self):
        return text_of(self.client.get(f"/documents/{self.mine.public_id}/"))

    def test_citing_conversations_are_counted_once_each_unless_they_are_few(self):
        self.mine = make_document("mine.md", owner=self.user, everyone=True)
        askers = [self.user, self.other, make_user("third"), make_user("fourth")]
        self.assertIn("Fewer than 3 conversations cite it.", self.shown())
        conversations = [answered(each, self.mine)[0] for each in askers[:2]]
        answered(self.user, self.mine, text="Nothing.", citations=[])  # it was given, and not cited
        self.assertIn("Fewer than 3 conversations cite it.", self.shown())
        conversations += [answered(each, self.mine)[0] for each in askers[2:]]
        self.assertIn("4 conversations cite it.", self.shown())
        recording.delete(Principal(self.user.pk, "session"), conversations[0].pk)
        self.assertIn("3 conversations cite it.", self.shown())
        with patch.object(citing, "MAX_COUNTED", 2), patch.object(citing, "MIN_COUNTED", 1):
            self.assertIn("2 conversations cite it.", self.shown())

    def test_deleting_a_document_says_how_many_verified_answers_end(self):
        self.mine = make_document("mine.md", [WORDS], owner=self.user)
        words = "1 verified answer cites it, and is not given any more."
        self.assertNotIn("verified answer", self.shown())
        answer = make_verified(self.mine)
        self.assertIn(words, self.shown())
        self.assertIn(words, text_of(self.client.get(f"/documents/{self.mine.public_id}/delete/")))
        VerifiedAnswer.objects.filter(pk=answer.pk).update(active=False)
        self.assertNotIn("verified answer", self.shown())

    def test_readers_without_the_right_to_change_a_document_see_no_count(self):
        self.mine = make_document("mine.md", owner=self.other, everyone=True)
        self.assertNotIn("cite it", self.shown())


class BroughtAlongTests(PortalCase):
    def test_an_imported_answer_cannot_be_regenerated(self):
        self.assertIn("Answer again", text_of(self.client.get(self.url)))
        Message.objects.filter(pk=self.answer.pk).update(client_id="a", imported=True)
        self.assertNotIn("Answer again", text_of(self.client.get(self.url)))


class SearchTests(PortalCase):
    def test_titles_and_text_are_found_and_marked(self):
        self.assertIn('<span class="hit">Carrying</span>', text_of(self.client.get("/search/?q=carrying")))
        self.assertIn('<span class="hit">Five days</span>', text_of(self.client.get("/search/?q=five+days")))

    def test_an_excerpt_names_no_source(self):
        self.assertNotIn("guide.md", text_of(self.client.get("/search/?q=five+days")))

    def test_a_search_without_results_says_that_it_leaves_out_earlier_versions(self):
        self.assertIn("Earlier versions of questions", text_of(self.client.get("/search/?q=unheard")))

    def test_wildcards_are_literal(self):
        self.assertIn("No conversation has these words", text_of(self.client.get("/search/?q=%25")))
        self.assertIn("No conversation has these words", text_of(self.client.get("/search/?q=C_rrying")))

    def test_conversations_of_others_are_not_found(self):
        self.client.force_login(self.other)
        self.assertNotIn(str(self.conversation.pk), text_of(self.client.get("/search/?q=carrying")))

    def test_unusual_queries_are_harmless(self):
        for query in ("%00", "a" * 500, "%F0%9F%98%80", "page=x&page=-1", "&page=99999999999999999999"):
            self.assertEqual(self.client.get(f"/search/?q={query}").status_code, 200)


@pytest.mark.slow
class StrangerTests(PortalCase):
    GET = ("", "source/1.1/", "rename", "delete", "export.md", "?source=1.1")
    POST = ("ask", "stop", "m/1/again", "rename", "pin", "archive", "delete", "undo")

    def requests(self, conversation_id):
        for path in self.GET:
            yield path, self.client.get(f"/c/{conversation_id}/{path}")
        for path in self.POST:
            yield path, self.client.post(f"/c/{conversation_id}/{path}", {"question": "?", "title": "x"})

    def test_another_persons_conversation_looks_like_a_missing_one(self):
        self.client.force_login(self.other)
        unknown = dict(self.requests(uuid4()))
        for path, response in self.requests(self.conversation.pk):
            self.assertEqual(response.status_code, 404, path)
            self.assertEqual(response.content, unknown[path].content, path)
        self.conversation.refresh_from_db()
        self.assertEqual(
            (self.conversation.title, self.conversation.deleted_at), ("Carrying over leave", None)
        )

    def test_anonymous_visitors_are_sent_to_sign_in_and_back(self):
        self.client.logout()
        for path, response in self.requests(self.conversation.pk):
            self.assertEqual(response.status_code, 302, path)
            self.assertTrue(response.headers["Location"].startswith("/accounts/sign-in/?next=/c/"), path)
        for path in ("/", "/search/?q=x"):
            self.assertEqual(self.client.get(path).status_code, 302)
