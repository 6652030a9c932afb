"""Asking, stopping and answering again in the portal, without JavaScript."""

from unittest.mock import patch
from uuid import uuid4

from django.utils import timezone

from chat.errors import Refused
from chat.models import Run
from chat.tests.portal_case import PortalCase, compact_text_of, text_of
from history.models import Conversation, Message
from ingestion.tests.factories import make_document


class AskTests(PortalCase):
    def test_a_first_question_opens_a_conversation(self):
        response = self.client.post("/", {"question": "How many days?\r\nAnd when?", "key": "k" * 32})
        run = Run.objects.get()
        self.assertEqual(response.status_code, 303)
        self.assertEqual(response.headers["Location"], f"/c/{run.conversation_id}/#latest")
        self.assertEqual(run.question.content, "How many days?\nAnd when?")
        self.start.assert_called_once()

    def test_the_script_gets_the_address_of_the_new_conversation(self):
        response = self.client.post(
            "/", {"question": "How?", "key": "k" * 32}, headers={"Accept": "application/json"}
        )
        run = Run.objects.get()
        self.assertEqual(response.json(), {"url": f"/c/{run.conversation_id}/", "run": str(run.pk)})

    def test_a_form_sent_twice_asks_once(self):
        for _ in range(2):
            self.client.post("/", {"question": "How?", "key": "k" * 32})
        self.assertEqual(Run.objects.count(), 1)

    def test_the_same_form_with_other_text_asks_again(self):
        self.client.post("/", {"question": "How?", "key": "k" * 32})
        response = self.client.post("/", {"question": "Why?", "key": "k" * 32})
        self.assertEqual(response.status_code, 303)
        self.assertEqual(Run.objects.count(), 2)

    def test_a_refused_question_stays_in_the_question_box_with_the_reason(self):
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

    def test_an_invalid_idempotency_key_is_ignored(self):
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
        self.assertEqual(scopes, [scope, scope])  # the third was refused while the second ran
        Run.objects.update(finished_at=timezone.now())
        self.client.post(f"/c/{opened.pk}/ask", {"question": "And why?", "scope": "own"})
        opened.refresh_from_db()
        self.assertEqual(opened.scope, "own")

    def test_a_scope_does_not_reveal_closed_documents_and_an_invalid_one_is_ignored(self):
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

    def test_an_answer_says_which_part_was_searched(self):
        step = {"title": "Generated search query", "description": "leave", "props": {"scope": "own"}}
        Message.objects.filter(pk=self.answer.pk).update(thoughts=[step])
        self.assertIn("in what you added", compact_text_of(self.client.get(self.url)))

    def test_a_question_during_an_answer_is_refused_and_kept(self):
        self.client.post(f"{self.url}ask", {"question": "One?"})
        response = self.client.post(f"{self.url}ask", {"question": "Two?"})
        self.assertEqual(response.status_code, 409)
        self.assertIn("Two?</textarea>", text_of(response))
        self.assertEqual(self.client.get(f"{self.url}ask")["Location"], f"{self.url}#latest")

    def test_an_answer_can_be_stopped_and_regenerated(self):
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
