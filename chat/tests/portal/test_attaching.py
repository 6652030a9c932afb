"""Files attached to a question: readable only by their owner, read before the answer, and searched."""

import asyncio
import json
from datetime import date
from types import SimpleNamespace
from unittest import mock

from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient, Client, SimpleTestCase, TestCase, TransactionTestCase, override_settings
from django.utils.translation import override

from chat.engine import answering
from chat.events import Searching
from chat.llm import use_model
from chat.protocols import run_events
from chat.quoting.quoting_model import QuotingModel
from chat.tests.conversations import answered
from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import Principal
from chatsite.db.threads import in_database
from history import projects, recording
from history.models import Message
from ingestion.access.lists import Audience, audience_of, set_audience
from ingestion.attachment_folder import as_shown
from ingestion.models import Document
from ingestion.search.scopes import count_named, count_unread, describe, kept_apart
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin


def file(name="crane.md", content=b"The crane lifts 4.5 tonnes."):
    return SimpleUploadedFile(name, content)


class AttachCase(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.user, self.other = make_user("asker"), make_user("other")
        self.client.force_login(self.user)

    def attach(self, *files, address="/attach", json=True, **posted):
        headers = {"Accept": "application/json"} if json else {}
        return self.client.post(address, {"file": list(files), **posted}, headers=headers)


class AttachTests(AttachCase):
    def test_a_file_is_private_in_a_folder_of_the_day(self):
        answer = self.attach(file())
        told = answer.json()
        document = Document.objects.get(public_id=told["documents"][0]["id"])
        self.assertEqual((answer.status_code, document.owner), (201, self.user))
        self.assertEqual(audience_of(document), Audience())
        self.assertRegex(document.folder, r"^Attachments/\d{4}-\d\d-\d\d$")
        reader = Principal(self.user.pk, "session")
        with override("de"):
            self.assertRegex(document.shown_folder, r"^Anhänge/\d{4}-\d\d-\d\d$")
            self.assertEqual(describe(reader, "folder:Attachments"), "dem Ordner „Anhänge“")
            self.assertEqual(as_shown("Attachments/Plans"), "Attachments/Plans")
            self.assertEqual(document.shown_origin, "An eine Frage angehängt")
            self.assertEqual(Document(folder="Attachments/Plans").shown_origin, "Attachments/Plans")
        self.assertEqual(
            told["scope"], {"value": f"document:{document.public_id}", "words": "Only “crane.md”"}
        )

    def test_another_file_joins_the_attached_ones_and_replaces_any_other_scope(self):
        first = self.attach(file(), scope="folder:HR").json()["scope"]["value"]
        both = self.attach(file("b.md", b"B."), scope=first).json()["scope"]
        self.assertTrue(both["value"].startswith(f"{first},"))
        self.assertEqual(both["words"], "Only 2 chosen documents")
        again = self.attach(file(), scope=both["value"]).json()
        self.assertEqual((again["documents"][0]["outcome"], again["scope"]), ("unchanged", both))

    def test_a_question_with_a_file_stays_in_its_project(self):
        mine = projects.create(Principal(self.user.pk, "command"), "Cranes", "", "own")
        theirs = projects.create(Principal(self.other.pk, "command"), "Secret cranes")
        answer = self.attach(file(), address=f"/projects/{mine.pk}/attach", json=False, question="How much?")
        self.assertContains(answer, f'action="/projects/{mine.pk}/ask"')
        self.assertContains(answer, "How much?</textarea>")
        self.assertTrue(answer.context["scope"].startswith("document:"))
        asked = {"question": "How much?", "file": "crane.md"}
        refused = self.client.post(f"/projects/{mine.pk}/ask", asked)
        self.assertContains(refused, f'action="/projects/{mine.pk}/ask"', status_code=refused.status_code)
        self.assertEqual(self.attach(file(), address=f"/projects/{theirs.pk}/attach").status_code, 404)
        mine.refresh_from_db()
        self.assertEqual(mine.scope, "own")

    def test_a_file_with_the_same_name_does_not_replace_another(self):
        first = self.attach(file()).json()["documents"][0]
        second = self.attach(file(content=b"The crane lifts six tonnes.")).json()["documents"][0]
        self.assertEqual((second["outcome"], second["name"]), ("added", "crane (2).md"))
        self.assertEqual(self.attach(file()).json()["documents"][0]["id"], first["id"])
        again = self.attach(file(content=b"The crane lifts six tonnes.")).json()["documents"][0]
        self.assertEqual((again["outcome"], again["id"]), ("unchanged", second["id"]))
        bare = [self.attach(file("notes", content)).json() for content in (b"One.", b"Two.")]
        self.assertEqual([each["documents"][0]["name"] for each in bare], ["notes", "notes (2)"])

    def test_a_file_with_another_spelling_of_the_name_does_not_replace_another(self):
        long = f"{'x' * 230}.md"
        for names in (("\u00fcber.md", "u\u0308ber.md", "\u00fcb\u200ber.md"), (long, long, long)):
            ids = {
                self.attach(file(name, f"Number {number}.".encode())).json()["documents"][0]["id"]
                for number, name in enumerate(names)
            }
            self.assertEqual(len(ids), 3, ascii(names))
        names = sorted(Document.objects.values_list("name", flat=True))
        self.assertEqual(names[3:], ["\u00fcber (2).md", "\u00fcber (3).md", "\u00fcber.md"])
        self.assertEqual({name[-7:] for name in names[:3]}, {"xxxx.md", " (2).md", " (3).md"})
        self.assertEqual({len(name) for name in names[:3]}, {200})

    def test_a_refused_file_has_a_reason_and_the_others_are_kept(self):
        answer = self.attach(file(), file("...", b"No name."), json=False, question="How much?")
        self.assertContains(answer, "...: The file has no name.", status_code=422)
        self.assertContains(answer, "How much?</textarea>", status_code=422)
        self.assertEqual([each.row.document.name for each in answer.context["chosen"]], ["crane.md"])
        self.assertContains(self.attach(json=False), "Choose at least one file.", status_code=422)

    def test_files_beyond_the_limit_of_a_scope_are_refused_before_any_is_stored(self):
        answer = self.attach(*(file(f"{number}.md") for number in range(16)))
        self.assertEqual(answer.status_code, 422)
        self.assertEqual(answer.json()["problems"], ["At most 15 documents can be attached."])
        self.assertFalse(Document.objects.exists())

    def test_files_beyond_the_limit_of_a_form_are_refused_with_a_message(self):
        answer = self.attach(*(file(f"{number}.md") for number in range(101)))
        self.assertEqual(answer.status_code, 400)
        self.assertEqual(
            answer.json(), {"error": "At most 100 files can be sent at once. Nothing was saved."}
        )
        self.assertFalse(Document.objects.exists())

    def test_a_question_with_only_names_of_files_is_kept_and_not_asked(self):
        answer = self.client.post("/", {"question": "How much?", "file": "crane.md", "key": "k"})
        self.assertContains(answer, "Attach the files first", status_code=400)
        self.assertContains(answer, "How much?</textarea>", status_code=400)
        self.assertFalse(recording.Conversation.objects.exists())

    def test_files_that_are_sent_with_a_question_are_attached_first(self):
        with mock.patch("chat.runs.start") as start:
            sent = self.attach(file(), json=False, question="How much?", send="1", scope="all", key="k" * 32)
            self.assertEqual(sent.status_code, 303)
            run = start.call_args.args[0]
            document = Document.objects.get()
            scope = f"document:{document.public_id}"
            self.assertEqual((run.request.question, run.request.options.scope), ("How much?", scope))
            self.assertEqual(sent["Location"], f"/c/{run.conversation_id}/#latest")
            row = recording.Conversation.objects.get()
            self.assertEqual((row.owner, row.scope, audience_of(document)), (self.user, scope, Audience()))
            twice = self.attach(file(), json=False, question="How much?", send="1", scope="all", key="k" * 32)
            self.assertEqual(twice["Location"], sent["Location"])
            self.assertEqual(Document.objects.count(), 1)

    def test_a_question_without_files_is_asked_as_usual(self):
        with mock.patch("chat.runs.start") as start:
            self.attach(json=False, question="How much?", send="1", scope="own")
        self.assertEqual(start.call_args.args[0].request.options.scope, "own")
        project = projects.create(Principal(self.user.pk, "command"), "Cranes")
        with mock.patch("chat.runs.start") as start:
            self.attach(
                file(), address=f"/projects/{project.pk}/attach", json=False, question="And?", send="1"
            )
        run = start.call_args.args[0]
        self.assertEqual(recording.Conversation.objects.get(pk=run.conversation_id).project, project)

    def test_a_failure_to_send_keeps_the_question_and_the_files(self):
        with mock.patch("chat.runs.start") as start:
            nothing = self.attach(file(), json=False, question=" ", send="1")
            self.assertEqual([each.row.document.name for each in nothing.context["chosen"]], ["crane.md"])
            refused = self.attach(file(), file("...", b"x"), json=False, question="How much?", send="1")
            self.assertContains(refused, "How much?</textarea>", status_code=422)
            with override_settings(USER_CONCURRENT_ANSWERS=0):
                later = self.attach(file(), json=False, question="How much?", send="1")
            self.assertContains(later, "How much?</textarea>", status_code=429)
            self.assertEqual([each.row.document.name for each in later.context["chosen"]], ["crane.md"])
            theirs = recording.open_conversation(Principal(self.other.pk, "command"))
            for files in ((), (file(),)):
                answer = self.attach(
                    *files, address=f"/c/{theirs.pk}/attach", json=False, question="x", send="1"
                )
                self.assertEqual(answer.status_code, 404)
        start.assert_not_called()

    def test_files_cannot_be_attached_to_conversations_of_others(self):
        theirs = recording.open_conversation(Principal(self.other.pk, "command"))
        self.assertEqual(self.attach(file(), address=f"/c/{theirs.pk}/attach").status_code, 404)
        self.assertEqual(self.client.get("/attach").status_code, 405)
        self.assertFalse(Document.objects.exists())

    def test_a_question_in_a_project_stays_there_with_its_files(self):
        project = projects.create(Principal(self.user.pk, "session"), "Works council")
        answer = self.attach(file(), address=f"/projects/{project.pk}/attach", json=False, question="And?")
        self.assertContains(answer, "And?</textarea>")
        self.assertEqual(answer.context["project"], project)
        self.assertContains(answer, f'formaction="/projects/{project.pk}/attach"')


@override_settings(LOGIN_REQUIRED=False)
class GuestTests(TransactionTestCase):
    """A guest's row is written on a separate connection, so a test's rollback does not remove it."""

    def test_guests_cannot_attach_files_and_see_no_button(self):
        guest = Client()
        self.assertNotContains(guest.get("/"), 'id="attach"')
        answer = guest.post("/attach", {"file": [file()]})
        self.assertEqual((answer.status_code, answer["Location"].split("?")[0]), (302, "/accounts/sign-in/"))
        self.assertFalse(Document.objects.exists())


class ChosenTests(AttachCase):
    """How the composer and the question show the selected documents."""

    def test_the_composer_shows_the_states_of_files_and_the_scope_without_each(self):
        ready, waiting = make_document("a.md", owner=self.user), make_document("b.md", owner=self.user)
        Document.objects.filter(pk=waiting.pk).update(status="reading", version=0)
        page = self.client.get(f"/?scope=document:{ready.public_id},{waiting.public_id}")
        self.assertEqual([each.row.state.words for each in page.context["chosen"]], ["Ready", "Reading"])
        self.assertEqual(page.context["chosen"][0].without, f"document:{waiting.public_id}")
        page = self.client.get(f"/?scope=document:{ready.public_id}")
        self.assertEqual(page.context["chosen"][0].without, "all")

    def test_a_document_that_is_closed_to_the_reader_has_no_chip_anywhere(self):
        theirs = make_document("board.md", owner=self.other)
        self.assertNotContains(self.client.get(f"/?scope=document:{theirs.public_id}"), "board.md")
        mine = make_document("mine.md", owner=self.user)
        scope = f"document:{theirs.public_id},{mine.public_id}"
        steps = [
            {"title": "Generated search query", "description": "leave", "props": {"scope": scope}},
        ]
        conversation, _ = answered(self.user, mine, thoughts=steps)
        turn = self.client.get(f"/c/{conversation.pk}/").context["turns"][0]
        self.assertEqual(turn.documents, [mine])

    def test_a_conversation_without_chosen_documents_shows_none(self):
        conversation, _ = answered(self.user, make_document("mine.md", owner=self.user))
        turn = self.client.get(f"/c/{conversation.pk}/").context["turns"][0]
        self.assertEqual(turn.documents, [])


class CountTests(AttachCase):
    def test_a_run_waits_only_for_own_documents_of_the_scope(self):
        mine, theirs = make_document("a.md", owner=self.user), make_document("b.md", everyone=True)
        Document.objects.update(status="indexing")
        me = Principal(self.user.pk, "session")
        self.assertEqual(count_unread(me, f"document:{mine.public_id},{theirs.public_id}"), 1)
        for scope in ("all", "own", "folder:x", "", f"document:{theirs.public_id}"):
            self.assertEqual(count_unread(me, scope), 0, scope)
        Document.objects.filter(pk=mine.pk).update(status="failed")
        self.assertEqual(count_unread(me, f"document:{mine.public_id}"), 0)

    def test_the_documents_of_a_scope_are_those_that_the_reader_may_read(self):
        mine = make_document("a.md", owner=self.user)
        make_document("b.md", everyone=True, folder="HR")
        theirs = make_document("c.md", owner=self.other, folder="HR")
        me = Principal(self.user.pk, "session")
        counts = {
            "own": 1,
            "folder:HR": 1,
            f"document:{mine.public_id},{theirs.public_id}": 1,
        }
        self.assertEqual({scope: count_named(me, scope) for scope in counts}, counts)
        Document.objects.filter(pk=mine.pk).update(status="failed", version=0)
        self.assertEqual(count_named(me, "own"), 0)


class WaitTests(SimpleTestCase):
    def wait(self, counts, scope="document:1", continues=None, seconds=5.0):
        """The events of a wait; `counts` has the number of unread documents at each look."""
        request = SimpleNamespace(options=SimpleNamespace(scope=scope), continues=continues)
        run = SimpleNamespace(request=request, principal=None)
        events, left = [], list(counts)

        async def look(_, __, ___):
            return left.pop(0) if len(left) > 1 else left[0]

        with (
            mock.patch.object(answering, "retry_until_available", look),
            mock.patch.multiple(answering, LOOK_SECONDS=0.0, WAIT_SECONDS=seconds),
        ):
            asyncio.run(answering.documents_read(run, events.append, 9))
        return events

    def test_progress_of_awaited_files_is_reported_at_each_change(self):
        self.assertEqual(self.wait([2, 2, 1, 0]), [Searching(9, 2), Searching(9, 1), Searching(9, 0)])

    def test_nothing_is_reported_without_awaited_files(self):
        self.assertEqual(self.wait([0]), [])
        self.assertEqual(self.wait([3], scope="folder:x"), [])
        self.assertEqual(self.wait([3], continues="a"), [])

    def test_the_wait_has_a_limit(self):
        self.assertEqual(self.wait([1], seconds=0.05), [Searching(9, 1)])

    def test_programs_that_follow_a_run_get_the_progress(self):
        self.assertEqual(
            [run_events._kind_and_members(event) for event in (Searching(9, 2), Searching(9))],
            [("searching", {"documents": 9, "awaited": 2}), ("searching", {"documents": 9})],
        )


FERRY = "The ferry leaves the harbour at 14:30 each day."


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class ApartTests(TransactionTestCase):
    """An attached file is searched in its conversation, and elsewhere only where it was chosen."""

    def setUp(self):
        self.user = make_user("asker")
        self.secret = ApiKey.objects.issue(self.user, "test")[1]
        make_document("timetable.md", [FERRY], everyone=True)
        self.document = make_document(
            "hire.md",
            ["My note: the ferry takes hired bicycles."],
            owner=self.user,
            folder="Attachments/2026-11-27",
        )
        self.named = f"document:{self.document.public_id}"

    async def found(self, scope, session=None, question="When does the ferry leave?"):
        """The names of the files that an answer was given, and its conversation."""
        body = {
            "messages": [{"role": "user", "content": question}],
            "context": {"overrides": {"scope": scope}},
            "session_state": session,
        }
        headers = {"Authorization": f"Bearer {self.secret}"}
        with use_model(QuotingModel()):
            answer = await AsyncClient().post("/chat", body, "application/json", headers=headers)
        said = answer.json()
        labels = said["context"]["data_points"]["citations"]
        return {label.partition("#")[0].rpartition("/")[2] for label in labels}, said["session_state"]

    async def test_another_conversation_does_not_find_an_attached_file_by_default(self):
        self.assertEqual((await self.found("all"))[0], {"timetable.md"})
        self.assertEqual((await self.found("own"))[0], {"hire.md"})
        self.assertEqual((await self.found("folder:Attachments"))[0], {"hire.md"})
        self.assertEqual((await self.found(self.named))[0], {"hire.md"})

    async def test_the_step_has_the_number_of_the_documents_that_are_searched(self):
        await in_database(make_document, "other.md", ["Other."], everyone=True)
        for scope, number in ((self.named, 1), ("all", 2)):  # the attached file is searched where it is named
            body = {
                "messages": [{"role": "user", "content": "When?"}],
                "context": {"overrides": {"scope": scope}},
            }
            headers = {"Authorization": f"Bearer {self.secret}"}
            with use_model(QuotingModel()):
                answer = await AsyncClient().post("/chat", body, "application/json", headers=headers)
                run = answer.headers["Chat-Run"]
                told = await AsyncClient().get(f"/chat/runs/{run}/events", headers=headers)
                lines = b"".join([piece async for piece in told.streaming_content]).splitlines()
            steps = [json.loads(line) for line in lines]
            self.assertEqual(
                [each["documents"] for each in steps if each["type"] == "searching"], [number], scope
            )

    async def test_if_nothing_was_found_the_page_says_that_attached_files_were_left_out(self):
        said = "Files that you attached to questions are searched only in their conversation"
        _, session = await self.found("all", question="Xylophones?")
        await sync_to_async(self.client.force_login)(self.user)
        open_page = sync_to_async(self.client.get)
        page = await open_page(f"/c/{session}/")
        self.assertContains(page, said)
        self.assertContains(page, f'<a href="/c/{session}/search-in">choose them</a>')
        self.assertContains(page, "Searched 1 document, found nothing")
        self.assertContains(await open_page("/"), "the 1 document you can read")
        await Document.objects.filter(pk=self.document.pk).aupdate(folder="Bicycles")
        self.assertNotContains(await open_page(f"/c/{session}/"), said)
        self.assertContains(await open_page("/"), "the 2 documents you can read")

    async def test_its_own_conversation_finds_an_attached_file_with_other_documents(self):
        names, session = await self.found(self.named)
        self.assertEqual(names, {"hire.md"})
        self.assertEqual((await self.found("all", session))[0], {"hire.md", "timetable.md"})
        answers = Message.objects.filter(conversation=session, role="assistant").order_by("position")
        self.assertEqual([each.searched_count async for each in answers], [1, 2])
        await Document.objects.filter(pk=self.document.pk).aupdate(valid_until=date(2026, 1, 1))
        await self.found("all", session)
        self.assertEqual((await answers.alast()).searched_count, 1)

    async def test_a_moved_or_shared_file_is_an_ordinary_document(self):
        for values in ({"folder": "Bicycles"}, {"folder": "Attachments/2026-11-27"}):
            await Document.objects.filter(pk=self.document.pk).aupdate(**values)
            moved = values["folder"] == "Bicycles"
            self.assertEqual("hire.md" in (await self.found("all"))[0], moved)
        await in_database(set_audience, self.document, Audience(everyone=True))
        self.assertIn("hire.md", (await self.found("all"))[0])

    async def test_files_in_an_attached_archive_are_treated_like_it(self):
        part = await in_database(
            make_document,
            "inside.md",
            ["The ferry in the archive leaves late."],
            owner=self.user,
            folder="Attachments/2026-11-27/hire.md",
            part_of=self.document,
        )
        principal = Principal(self.user.pk, "session")
        self.assertEqual(await in_database(kept_apart, principal), [self.document.pk, part.pk])
        self.assertEqual(await in_database(kept_apart, principal, [self.named]), [])
        self.assertEqual((await self.found("all"))[0], {"timetable.md"})

    def test_attached_files_of_others_are_not_disclosed(self):
        other = make_user("other")
        self.assertEqual(kept_apart(Principal(other.pk, "session")), [])

    def test_pages_say_where_an_attached_file_is_searched(self):
        self.client.force_login(self.user)
        page = self.client.get(f"/documents/{self.document.public_id}/")
        self.assertContains(page, "Attached to a question: other conversations search it only")
        self.assertContains(page, 'value="place">Move to another folder</button>')
        self.assertContains(self.client.get("/search-in"), "except 1 file attached to a question")
        Document.objects.filter(pk=self.document.pk).update(folder="Bicycles")
        page = self.client.get(f"/documents/{self.document.public_id}/")
        self.assertNotContains(page, "Attached to a question")
        self.assertNotContains(self.client.get("/search-in"), "that you attached")
