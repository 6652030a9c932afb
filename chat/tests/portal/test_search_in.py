"""“Search in” offers readable documents, and returns to the typed question with the selection."""

from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from chat.portal.search_in import _with_parents
from chatsite.accounts.principal import Principal
from history import recording
from history.models import Conversation
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user


class SearchIn(TestCase):
    def setUp(self):
        self.user, self.other = make_user("asker"), make_user("other")
        self.client.force_login(self.user)
        self.leave = make_document(
            "leave.md", everyone=True, owner=self.other, folder="HR/Leave", category="Rules"
        )
        self.travel = make_document("travel.md", everyone=True, owner=self.other, folder="HR")
        self.closed = make_document("closed.md", owner=self.other, folder="HR/Board", category="Secret")

    def page(self, address="/search-in", **posted):
        return self.client.post(address, posted).content.decode()

    def test_readable_folders_are_offered_with_the_number_of_documents_inside(self):
        page = self.client.get("/search-in")
        offered = {each.scope: each.documents for each in page.context["folders"]}
        self.assertEqual(offered, {"folder:HR": 2, "folder:HR/Leave": 1})
        self.assertEqual([each.scope for each in page.context["categories"]], ["category:Rules"])

    def test_unreadable_documents_are_neither_offered_nor_found_nor_kept(self):
        for words in ("", "closed", "board", "secret"):
            page = self.page(q=words, tick="1", document=str(self.closed.public_id))
            self.assertNotIn(str(self.closed.public_id), page)
            self.assertNotIn("Board", page)
            self.assertNotIn("category:Secret", page)

    def test_words_of_names_find_folders_categories_and_documents(self):
        found = self.client.post("/search-in", {"q": "leav", "tick": "1"}).context
        self.assertEqual([each.name for each in found["folders"]], ["HR/Leave"])
        self.assertEqual(found["categories"], [])
        self.assertEqual(found["documents"], [self.leave])

    def test_a_choice_returns_to_the_typed_question(self):
        page = self.page(use="folder:HR", question="How many days?\r\nAnd carried?", scope="all")
        self.assertIn("How many days?\nAnd carried?</textarea>", page)
        self.assertInHTML('<option value="folder:HR" selected>Only the folder “HR”</option>', page)

    def test_ticked_documents_stay_ticked_during_a_search_and_become_the_scope(self):
        ticked = [str(self.leave.public_id), str(self.travel.public_id)]
        found = self.client.post("/search-in", {"q": "xylophone", "tick": "1", "document": ticked}).context
        self.assertEqual(found["ticked"], [self.leave, self.travel])
        page = self.page(use="document", document=ticked, question="And now?")
        self.assertInHTML(
            f'<option value="document:{",".join(ticked)}" selected>Only 2 chosen documents</option>', page
        )

    def test_deleted_and_closed_documents_of_a_scope_are_not_counted(self):
        chosen = [make_document(f"{name}.md", owner=self.user) for name in ("one", "two", "three")]
        scope = f"document:{','.join(str(each.public_id) for each in (*chosen, self.closed))}"
        for left, words in (
            (3, "Only 3 chosen documents"),
            (2, "Only 2 chosen documents"),
            (1, "Only “One”"),
            (0, "Only documents that you cannot read"),
        ):
            Document.objects.filter(pk__in=[each.pk for each in chosen[left:]]).delete()
            page = self.client.get("/", {"scope": scope}).content.decode()
            self.assertInHTML(f'<option value="{scope}" selected>{words}</option>', page)

    def test_the_documents_of_the_scope_are_ticked_when_the_page_opens(self):
        scope = f"document:{self.leave.public_id}"
        self.assertEqual(self.client.get("/search-in", {"scope": scope}).context["ticked"], [self.leave])

    def test_no_document_and_too_many_are_refused_with_a_message_beside_the_button(self):
        answer = self.client.post("/search-in", {"use": "document", "tick": "1", "question": "Why?"})
        self.assertContains(answer, "Tick at least one document, or choose something else on this page.")
        self.assertRegex(answer.content.decode(), r'value="document"\s+aria-describedby="problem"')
        self.assertContains(answer, 'name="question" value="Why?"')
        many = [f"00000000-0000-4000-8000-{number:012}" for number in range(16)]
        answer = self.client.post("/search-in", {"use": "document", "tick": "1", "document": many})
        self.assertContains(answer, "At most 15 documents can be chosen.")

    def test_folders_categories_and_documents_are_sorted_by_name(self):
        for name, folder, category in (("Zebra.md", "HR/Admin", "b"), ("apple.md", "Crew", "A")):
            make_document(name, everyone=True, owner=self.other, folder=folder, category=category)
        page = self.client.get("/search-in")
        self.assertEqual(
            [each.name for each in page.context["folders"]], ["Crew", "HR", "HR/Admin", "HR/Leave"]
        )
        self.assertEqual([each.name for each in page.context["categories"]], ["A", "b", "Rules"])
        names = [each.name for each in page.context["documents"]]
        self.assertEqual(names, ["apple.md", "leave.md", "travel.md", "Zebra.md"])

    def test_without_anything_to_find_no_search_is_offered(self):
        self.client.force_login(make_user("newcomer"))
        Document.objects.update(owner=None, access_list=self.closed.access_list)
        page = self.client.get("/search-in")
        self.assertContains(page, "You cannot read any document yet.")
        self.assertNotContains(page, 'name="q" type="search" value=""', html=False)
        self.assertNotContains(page, 'placeholder="Folder, category or document"')

    def test_an_invalid_scope_stays_on_the_page(self):
        for wrong in ("document:1", "folder:", "x" * 700, "document:" + "\x00"):
            answer = self.client.post(
                "/search-in", {"use": wrong, "document": ["\x00", "1"], "q": "\x00", "tick": "1"}
            )
            self.assertTemplateUsed(answer, "chat/search_in.html")

    def test_a_conversation_keeps_its_scope_until_a_question_is_asked(self):
        row = recording.open_conversation(Principal(self.user.pk, "command"))
        page = self.page(f"/c/{row.pk}/search-in", use="category:Rules", question="Why?")
        self.assertInHTML('<option value="category:Rules" selected>Only the category “Rules”</option>', page)
        self.assertEqual(Conversation.objects.get(pk=row.pk).scope, "")
        foreign = recording.open_conversation(Principal(self.other.pk, "command"))
        self.assertEqual(self.client.get(f"/c/{foreign.pk}/search-in").status_code, 404)

    def test_deep_folders_are_offered_with_their_outer_parents_only(self):
        """Thousands of them would otherwise have a million parents."""
        deep = {f"{number}/{'a/' * 200}b": 1 for number in range(50)}
        counted = _with_parents(deep)
        self.assertLess(len(counted), 600)
        self.assertEqual((counted["7"], counted["7/a"], counted[f"7/{'a/' * 200}b"]), (1, 1, 1))

    def test_the_page_says_if_there_are_more_folders(self):
        for number in range(13):
            make_document(f"{number}.md", everyone=True, owner=self.other, folder=f"Team {number:02}")
        page = self.client.get("/search-in")
        self.assertEqual(len(page.context["folders"]), 12)
        self.assertContains(page, "These are not all: type a part of the name")

    def test_the_number_of_folders_does_not_affect_the_queries(self):
        self.client.get("/search-in")
        with CaptureQueriesContext(connection) as few:
            self.client.get("/search-in")
        for number in range(20):
            make_document(
                f"{number}.md", everyone=True, owner=self.other, folder=f"F{number}/G", category=f"C{number}"
            )
        with CaptureQueriesContext(connection) as many:
            self.client.get("/search-in")
        self.assertEqual(len(many), len(few))
