"""The list of documents, one document, and their states: who sees what."""

import re
from datetime import timedelta
from itertools import count

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import TestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.models import Document, Passage
from ingestion.portal import finding
from ingestion.tests.factories import make_user
from ingestion.tests.media import forget_jobs

EVIL = '<script>alert("1")</script>'
_numbers = count(1)


def add(name="plan.pdf", *, owner=None, everyone=False, groups=(), users=(), **values):
    """A document row without a file or passages, which are not needed here."""
    audience = Audience(
        everyone, frozenset(user.pk for user in users), frozenset(group.pk for group in groups)
    )
    access_list = access_list_for(audience, owner.pk if owner else None)
    defaults = {
        "status": Document.Status.READY,
        "version": 1,
        "file": f"documents/none-{next(_numbers)}",
        "size": 10,
    }
    return Document.objects.create(name=name, owner=owner, access_list=access_list, **defaults | values)


def without_tokens(response):
    return re.sub(rb'value="[A-Za-z0-9]{64}"', b"", response.content)


@pytest.mark.slow
class AccessTests(TestCase):
    """Every page and API, for each kind of person."""

    def setUp(self):
        self.group = Group.objects.create(name="HR")
        self.owner, self.stranger = make_user("ada"), make_user("eve")
        self.member = make_user("mia", groups=["HR"])
        self.staff = make_user("sam", groups=["HR"], is_staff=True, is_superuser=True)
        self.staff_outside = make_user("sid", is_staff=True, is_superuser=True)
        self.staff_without_right = make_user("sue", groups=["HR"], is_staff=True)
        self.document = add("salaries.pdf", owner=self.owner, groups=[self.group])
        self.path = f"/documents/{self.document.public_id}/"
        self.unknown = "/documents/00000000-0000-4000-8000-000000000000/"

    def get(self, user, path):
        self.client.force_login(user)
        return self.client.get(path)

    def post(self, user, path, **values):
        self.client.force_login(user)
        return self.client.post(path, values)

    def test_every_page_requires_signing_in(self):
        for path in (
            "/documents/",
            "/documents/add/",
            "/documents/status/",
            self.path,
            f"{self.path}delete/",
        ):
            self.assertEqual(self.client.get(path).status_code, 302, path)
            self.assertIn("/accounts/sign-in/", self.client.get(path).url)
        for action in ("rights/", "again/", "delete/"):
            self.assertIn("/accounts/sign-in/", self.client.post(self.path + action).url)

    def test_a_disabled_account_has_no_access(self):
        self.client.force_login(self.owner)
        self.owner.is_active = False
        self.owner.save()
        self.assertEqual(self.client.get(self.path).status_code, 302)

    @pytest.mark.slow
    def test_other_people_get_the_same_response_as_for_an_unknown_id(self):
        for person in (self.stranger, self.staff_outside):
            for action in ("", "delete/"):
                theirs = self.get(person, self.path + action)
                self.assertEqual(theirs.status_code, 404)
                self.assertEqual(
                    without_tokens(theirs), without_tokens(self.get(person, self.unknown + action))
                )
            for action in ("rights/", "again/", "delete/"):
                self.assertEqual(self.post(person, self.path + action, who="me").status_code, 404)
        self.assertTrue(Document.objects.filter(pk=self.document.pk).exists())

    def test_other_people_see_neither_the_name_nor_a_count(self):
        response = self.get(self.stranger, "/documents/")
        self.assertNotContains(response, "salaries")
        self.assertContains(response, "All you can read <span>0</span>")
        found = self.get(self.stranger, f"/documents/status/?id={self.document.public_id}&id=nonsense")
        self.assertEqual(found.json(), {"documents": []})

    def test_the_list_and_the_start_page_show_the_same_number_of_searched_documents(self):
        add("bundle.zip", owner=self.owner)
        Document.objects.filter(pk=self.document.pk).update(passage_count=3)
        page = self.get(self.owner, "/documents/")
        self.assertContains(page, "All you can read <span>2</span>")
        self.assertContains(page, "Answers search 1 of them")
        self.assertContains(page, "files attached to questions are left out")
        self.assertContains(self.get(self.owner, "/"), "from the 1 document you can read")

    def test_a_group_member_can_read_but_not_change(self):
        for person in (self.member, self.staff_without_right):
            page = self.get(person, self.path)
            self.assertContains(page, "You are in HR, and HR may read it.")
            self.assertNotContains(page, "Change access")
            self.assertNotContains(page, "delete/")
            self.assertEqual(self.get(person, f"{self.path}delete/").status_code, 403)
            for action in ("rights/", "again/", "delete/"):
                self.assertEqual(self.post(person, self.path + action, who="me").status_code, 403)

    def test_leaving_the_group_ends_all_access_immediately(self):
        self.assertEqual(self.get(self.member, self.path).status_code, 200)
        self.member.groups.clear()
        self.assertEqual(self.client.get(self.path).status_code, 404)
        self.assertNotContains(self.client.get("/documents/"), "salaries")

    def test_the_owner_and_staff_with_the_permission_can_change(self):
        for person in (self.owner, self.staff):
            page = self.get(person, self.path)
            self.assertContains(page, "Change access")
            self.assertContains(page, f"{self.path}delete/")

    def test_changes_need_post_and_a_csrf_token(self):
        self.client.force_login(self.owner)
        for action in ("rights/", "again/"):
            self.assertEqual(self.client.get(self.path + action).status_code, 405)
        strict = self.client_class(enforce_csrf_checks=True)
        strict.force_login(self.owner)
        for action in ("rights/", "again/", "delete/"):
            self.assertEqual(strict.post(self.path + action).status_code, 403)
        self.assertEqual(strict.post("/documents/add/").status_code, 403)

    def test_only_the_owner_sees_the_names_of_other_readers(self):
        document = add("notes.md", owner=self.owner, users=[self.stranger, self.member])
        self.assertContains(self.get(self.owner, f"/documents/{document.public_id}/"), "<bdi>eve, mia</bdi>")
        page = self.get(self.member, f"/documents/{document.public_id}/")
        self.assertContains(page, "1 other person")
        self.assertNotRegex(page.content.decode(), r"\beve\b")

    def test_readers_do_not_see_the_names_of_groups_of_others(self):
        mine, closed = (Group.objects.create(name=name) for name in ("Divers", "Restructuring"))
        self.member.groups.add(mine)
        document = add("notes.md", owner=self.owner, groups=[mine, closed])
        page = f"/documents/{document.public_id}/"
        self.assertContains(self.get(self.owner, page), "<bdi>Divers, Restructuring</bdi>")
        self.assertContains(self.get(self.member, page), "<bdi>Divers, 1 other group</bdi>")
        for path in (page, "/documents/"):
            self.assertNotContains(self.get(self.member, path), "Restructuring")


@pytest.mark.slow
class ListTests(TestCase):
    def setUp(self):
        self.user, self.other = make_user("ada"), make_user("eve")
        self.client.force_login(self.user)

    def names(self, response):
        return re.findall(
            r"<a href=\"/documents/[0-9a-f-]{36}/\"><bdi>(.*?)</bdi>", response.content.decode()
        )

    def listed(self, query=""):
        return self.names(self.client.get(f"/documents/?{query}"))

    def test_filters_show_their_documents_and_counts(self):
        states = Document.Status
        add("ready.md", owner=self.user)
        add("failed.md", owner=self.user, status=states.FAILED, version=0, reason="It has a password.")
        add(
            "running.md", owner=self.user, status=states.READING, version=0, progress_done=3, progress_total=9
        )
        add("shared.md", owner=self.other, everyone=True)
        add("theirs.md", owner=self.other)
        add("unread.md", owner=self.other, everyone=True, status=states.FAILED, version=0)
        page = self.client.get("/documents/")
        for text in (
            "All you can read <span>4",
            "Added by you <span>3",
            "In progress <span>1",
            "Failed <span>1",
        ):
            self.assertContains(page, text)
        self.assertContains(page, "It has a password.")
        self.assertContains(page, "Reading page 3 of 9")
        self.assertEqual(self.listed(), ["shared.md", "running.md", "failed.md", "ready.md"])
        self.assertEqual(self.listed("show=mine"), ["running.md", "failed.md", "ready.md"])
        self.assertEqual(self.listed("show=running"), ["running.md"])
        self.assertEqual(self.listed("show=failed"), ["failed.md"])
        self.assertEqual(self.listed("show=nonsense"), self.listed())

    def test_documents_are_found_by_name_and_folder(self):
        add("Travel costs.pdf", owner=self.user, folder="Finance/Travel")
        add("Leave.pdf", owner=self.user)
        self.assertEqual(self.listed("q=travel+finance"), ["Travel costs.pdf"])
        self.assertEqual(self.listed("q=100%25"), [])
        self.assertEqual(self.listed("q=le%00ave"), ["Leave.pdf"])

    def test_an_empty_list_and_an_empty_result_have_different_messages(self):
        self.assertContains(self.client.get("/documents/"), "There is nothing to search yet.")
        add("a.md", owner=self.user)
        self.assertContains(self.client.get("/documents/?q=zebra"), "No document here matches")
        self.assertContains(self.client.get("/documents/?show=failed"), "None of your documents failed.")

    def test_pages_stay_stable_while_documents_are_added_and_deleted(self):
        made = [add(f"d{number:03}.md", owner=self.user) for number in range(120)]
        moment = timezone.now() - timedelta(days=1)
        # The same time for all: the cursor must still distinguish them.
        Document.objects.update(created_at=moment)
        seen, page = [], self.client.get("/documents/")
        add("newcomer.md", owner=self.user)
        while True:
            seen += self.names(page)
            link = re.search(r'href="(\?[^"]*after=[^"]*)">Next', page.content.decode())
            if not link:
                break
            last = re.findall(r"/documents/([0-9a-f-]{36})/\"><bdi>", page.content.decode())[-1]
            Document.objects.filter(public_id=last).delete()  # the row that the cursor refers to
            page = self.client.get("/documents/" + link[1].replace("&amp;", "&"))
        self.assertEqual(sorted(seen), [document.name for document in made])

    def test_an_invalid_cursor_shows_the_first_page(self):
        add("a.md", owner=self.user)
        for cursor in ("x", "99999999999999999999-" + "0" * 32, "1-zz", "9" * 16 + "-" + "f" * 32):
            self.assertEqual(self.listed(f"after={cursor}"), ["a.md"], cursor)

    def test_sixty_documents_need_as_many_queries_as_ten(self):
        group = Group.objects.create(name="HR")
        for number in range(10):
            add(f"a{number}.md", owner=self.user, groups=[group], users=[self.other])
        self.client.get("/documents/")  # fills the caches
        with CaptureQueriesContext(connection) as ten:
            self.client.get("/documents/")
        for number in range(50):
            add(f"b{number}.md", owner=make_user(), everyone=True)
        with self.assertNumQueries(len(ten)):
            self.client.get("/documents/")

    def test_hostile_names_are_shown_as_text(self):
        Group.objects.create(name=EVIL)
        self.user.groups.add(Group.objects.get())
        document = add(
            f"{EVIL}.pdf", owner=self.user, groups=[Group.objects.get()], title=EVIL, folder=EVIL,
            category=EVIL, status=Document.Status.FAILED, reason=EVIL,
        )  # fmt: skip
        Passage.objects.create(document=document, position=0, heading=EVIL, content=EVIL)
        path = f"/documents/{document.public_id}/"
        for page in ("/documents/", f"/documents/?q={EVIL}", "/documents/add/", path, f"{path}delete/"):
            response = self.client.get(page)
            self.assertEqual(response.status_code, 200, page)
            self.assertNotIn(b"<script>alert", response.content, page)
            self.assertNotIn(b"style=", response.content, page)


@pytest.mark.slow
class DocumentTests(TestCase):
    def setUp(self):
        self.user = make_user("ada")
        self.client.force_login(self.user)
        self.document = add("plan.pdf", owner=self.user, title="The plan")
        self.path = f"/documents/{self.document.public_id}/"

    def test_passages_are_paginated(self):
        Passage.objects.bulk_create(
            Passage(document=self.document, position=number, content=f"Words {number:02}.", page=1)
            for number in range(45)
        )
        first = self.client.get(self.path)
        self.assertContains(first, "Words 19.")
        self.assertNotContains(first, "Words 20.")
        self.assertContains(first, "?from=20#passages")
        last = self.client.get(f"{self.path}?from=40")
        self.assertContains(last, "Words 44.")
        self.assertContains(last, "?from=20#passages")
        self.assertContains(self.client.get(f"{self.path}?from=-1%00"), "Words 00.")

    def test_words_are_found_in_the_document_and_marked(self):
        other = add("other.pdf", everyone=True)
        Passage.objects.create(document=other, position=0, content="Elsewhere: mooring lines.")
        Passage.objects.bulk_create(
            Passage(
                document=self.document,
                position=number,
                heading="Lines" if number % 2 else "",
                content=f"The <b>Mooring</b> of deck {number:02}. 100% moored.",
            )
            for number in range(50)
        )
        found = self.client.get(f"{self.path}?q=lines+MOOR")
        self.assertContains(found, "25 passages have these words.")
        first = '<mark id="hit-1" aria-current="true">Moor</mark>'
        self.assertContains(found, f"The &lt;b&gt;{first}ing&lt;/b&gt; of deck 01.")
        self.assertContains(found, '100% <mark id="hit-2">moor</mark>ed.')
        self.assertNotContains(found, "deck 02")
        self.assertNotContains(found, "Elsewhere")
        self.assertContains(found, "?q=lines%20MOOR&amp;from=41#passages")
        following = self.client.get(f"{self.path}?q=lines+MOOR&from=41")
        self.assertContains(following, "deck 49")
        self.assertContains(following, "?q=lines%20MOOR&amp;from=1#passages")
        for nothing in ("anchors", "100%25%25", "_", "\\", "%00x", "x" * 5_000):
            none = self.client.get(f"{self.path}?q={nothing}")
            self.assertContains(none, "0 passages have these words.")
        self.client.force_login(make_user("eve"))
        self.assertEqual(self.client.get(f"{self.path}?q=moor").status_code, 404)

    def test_only_matching_words_are_marked(self):
        self.assertEqual(
            finding.marked("Ab abba", ["ab", "bb"]),
            [("Ab", True), (" ", False), ("abb", True), ("a", False)],
        )
        self.assertEqual(finding.marked("İstanbul", ["stan"]), [("İstanbul", False)])
        self.assertEqual(finding.marked("", ["a"]), [])
        self.assertEqual(finding.words_of("A a  B\0c" + " x" * 500)[:4], ["a", "b", "c", "x"])

    def test_hits_can_be_visited_one_by_one_through_the_whole_document(self):
        Passage.objects.bulk_create(
            Passage(document=self.document, position=number, content=f"Annual leave {number:02}, and leave.")
            for number in range(50)
        )
        found = self.client.get(f"{self.path}?q=leave")
        self.assertContains(found, "Hit 1 of 100")
        self.assertContains(found, "?q=leave&amp;hit=2#hit-2")
        self.assertContains(found, "?q=leave&amp;hit=100#hit-100")
        later = self.client.get(f"{self.path}?q=leave&hit=41")
        self.assertContains(later, "Hit 41 of 100")
        self.assertContains(later, '<mark id="hit-41" aria-current="true">leave</mark> 20')
        self.assertNotContains(later, "leave</mark> 19")
        last = self.client.get(f"{self.path}?q=leave&hit=100")
        self.assertContains(last, '<mark id="hit-100" aria-current="true">')
        self.assertContains(last, "?q=leave&amp;hit=1#hit-1")
        self.assertContains(self.client.get(f"{self.path}?q=leave&from=20"), "Hit 41 of 100")
        for wrong in ("hit=101", "hit=999999999999", "hit=0", "hit=-1", "hit=x"):
            self.assertEqual(self.client.get(f"{self.path}?q=leave&{wrong}").status_code, 200)
        self.assertNotContains(self.client.get(f"{self.path}?q=zebra"), "Hit ")
        self.assertNotContains(self.client.get(f"{self.path}?hit=3"), "Hit ")

    def test_adjacent_words_are_one_hit(self):
        Passage.objects.create(
            document=self.document, position=0, content="Annual leave is no leave that is annual."
        )
        found = self.client.get(f"{self.path}?q=annual+leave")
        self.assertContains(found, "Hit 1 of 3")
        both = '<mark id="hit-1" aria-current="true">Annual</mark> <mark>leave</mark>'
        self.assertContains(found, both)

    def test_the_page_refreshes_only_while_the_file_is_being_read(self):
        self.assertNotContains(self.client.get(self.path), 'http-equiv="refresh"')
        Document.objects.update(status=Document.Status.INDEXING, progress_done=1, progress_total=4)
        self.assertContains(self.client.get(self.path), '<meta http-equiv="refresh" content="5">')
        self.assertContains(self.client.get(self.path), "Embedding 1 of 4")

    def test_a_waiting_document_shows_how_many_are_ahead_of_it(self):
        forget_jobs()
        for number, turn in enumerate((3, 5, 7)):
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args)"
                    " VALUES ('ingestion', 'ingestion.read', %s, %s, '{}')",
                    [-turn, f"test-{number}"],
                )
        for turn, words in (
            (3, "Next in the queue."),
            (5, "1 document ahead."),
            (9, "3 documents ahead."),
        ):
            Document.objects.update(status=Document.Status.WAITING, queue_position=turn)
            self.assertContains(self.client.get(self.path), words)
            reply = self.client.get(f"/documents/status/?id={self.document.public_id}").json()["documents"][0]
            self.assertIn(words, reply["detail"])

    def test_the_script_gets_the_state_as_json(self):
        Document.objects.update(status=Document.Status.FAILED, reason="It has a password.", version=0)
        reply = self.client.get(f"/documents/status/?id={self.document.public_id}").json()["documents"][0]
        self.assertEqual(reply["words"], "Failed")
        self.assertEqual(reply["detail"], "It has a password.")
        self.assertFalse(reply["unfinished"])

    def test_open_and_download_link_to_the_right_file_even_if_names_repeat(self):
        add("plan.pdf", owner=self.user)
        link = re.search(r'href="(/content/[^"]+)"', self.client.get(self.path).content.decode())[1]
        self.assertEqual(link, f"/content/{self.document.public_id}/{self.document.name}")
