"""Shared links: their tokens, and how owners, programs and administrators create, list and revoke them."""

import re
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.tests.sharing_case import (
    CANARIES,
    CHANGING,
    SharingCase,
)
from chatsite.accounts.models import ApiKey, AuditEntry
from chatsite.accounts.principal import Principal
from chatsite.logs import JsonFormatter
from history import recording, sharing
from history.models import Share
from ingestion.access.lists import Audience
from ingestion.tests.factories import make_user


class TokenTests(SharingCase):
    def test_only_the_hash_is_stored(self):
        self.share()
        self.assertNotIn(self.token, repr(Share.objects.values()))
        self.assertGreaterEqual(len(self.token), 43)

    def test_the_log_contains_no_usable_address(self):
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

    def test_anonymous_visitors_are_sent_to_sign_in_for_any_token(self):
        url = self.share()
        client = Client()
        for each in (url, "/s/guessed/"):
            answer = client.get(each)
            self.assertEqual(
                (answer.status_code, answer.headers["Location"]), (302, f"/accounts/sign-in/?next={each}")
            )
        with self.settings(LOGIN_REQUIRED=False):
            self.assertEqual(Client().get(url).status_code, 302, "a guest has not signed in")

    def test_the_page_is_not_cached_and_sends_no_referrer(self):
        self.share()
        answer = self.client.get(self.url)
        self.assertIn("no-store", answer.headers["Cache-Control"])
        self.assertEqual(answer.headers["Referrer-Policy"], "same-origin")

    def test_the_page_names_owner_readers_and_expiry(self):
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
        self.assertEqual(sharing.readers_of(sharing.with_readers(Share.objects.all()).get()), "reader")

    def test_invalid_shares_are_refused_with_a_sentence(self):
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

    def test_the_conversation_shows_its_readers_and_the_expiry_of_its_share(self):
        page = f"/c/{self.conversation.pk}/"
        self.assertNotContains(self.client.get(page), "shared-line")
        self.create()
        text = re.sub(r"\s+", " ", self.client.get(page).content.decode())
        self.assertIn("Shared with <bdi>Pursers</bdi> until", text)
        sharing.revoke(self.principal, Share.objects.get().pk)
        self.assertNotContains(self.client.get(page), "shared-line")

    def test_own_links_are_listed_and_can_be_revoked(self):
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

    def test_the_number_of_queries_does_not_grow_with_links(self):
        self.create()
        self.client.get("/shares/")
        with CaptureQueriesContext(connection) as one:
            self.client.get("/shares/")
            needed = len(one)
        for _ in range(5):
            self.create()
        with self.assertNumQueries(needed):
            self.client.get("/shares/")

    def test_many_readers_of_links_are_neither_loaded_nor_all_named(self):
        crowd = [make_user(f"reader-{number:02}") for number in range(sharing.MAX_NAMED + 9)]
        self.share(Audience(user_ids=frozenset(person.pk for person in crowd)))
        self.client.force_login(self.owner)
        key = ApiKey.objects.issue(self.owner, "test")[1]
        headers = {"Authorization": f"Bearer {key}"}
        for path in ("/shares/", self.form, f"/c/{self.conversation.pk}/", "/api/shares"):
            with self.subTest(path), CaptureQueriesContext(connection) as queries:
                page = self.client.get(path, headers=headers if path == "/api/shares" else {})
                self.assertContains(page, "reader-00")
                loaded = [each["sql"] for each in queries if '"ingestion_accessentry"."id"' in each["sql"]]
                self.assertEqual([sql for sql in loaded if f"{self.row.access_list_id}" in sql], [])
                if path == "/api/shares":
                    self.assertEqual(page.json()[0]["people"], [person.username for person in crowd])
                elif path == "/shares/":
                    self.assertContains(page, "reader-19 and 9 more")
                    self.assertNotContains(page, "reader-20")


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

    def test_actions_on_links_are_logged_without_text_of_the_conversation(self):
        made = self.create(groups=["Pursers"], people=["reader"], expires_at="2036-01-01T00:00:00Z").json()
        sharing.renew(self.principal, made["id"])
        for _ in range(2):  # the second call changes nothing
            self.call("delete", f"/{made['id']}")
        self.create(everyone=True, answer_id=str(self.answer.pk), expires_at=None)
        entries = list(AuditEntry.objects.order_by("pk"))
        actions = ["share_created", "share_renewed", "share_revoked", "share_created"]
        self.assertEqual([entry.action for entry in entries], actions)
        self.assertEqual({(entry.actor, entry.person) for entry in entries}, {("mara", "mara")})
        first, *others, last = (entry.subject for entry in entries)
        everything = f"(all messages so far of conversation {self.conversation.pk}, until 2036-01-01T00:00"
        self.assertTrue(first.startswith(f"{made['id']} {everything}"), first)
        self.assertEqual(set(first.rpartition("), for ")[2].split(", ")), {"Pursers", "reader"})
        self.assertIn(self.reader.pk, [each["person"] for each in entries[0].named])
        self.assertEqual(others, [made["id"]] * 2)
        self.assertIn("(one answer of conversation", last)
        self.assertTrue(last.endswith("without an end), for Everyone who signs in"), last)
        for words in (self.conversation.title, *CANARIES, self.answer.content[:20], made["url"][-20:]):
            self.assertNotIn(words.lower(), " ".join(entry.subject for entry in entries).lower())

    def test_a_share_expires_in_thirty_days_by_default(self):
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

    def test_the_number_of_open_links_of_a_person_is_limited(self):
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

    def test_links_are_listed_and_each_view_is_logged(self):
        for page in (self.list, self.one):
            shown = self.client.get(page)
            for words in ("mara", "Pursers", str(self.row.conversation_id)):
                self.assertContains(shown, words)
            self.assertNotContains(shown, "The crew office")  # Mara wrote the title
            self.assertNotContains(shown, self.row.digest)
            self.assert_clean(shown.content.decode())
        looks = AuditEntry.objects.exclude(action="share_created").order_by("pk")
        looked = looks.values_list("action", "actor", "person")
        self.assertEqual(list(looked), [("shares_listed", "staff", ""), ("share_read", "staff", "mara")])

    def test_with_the_permission_a_link_is_revoked_and_it_is_logged(self):
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

    def test_without_the_permission_the_page_does_not_exist(self):
        self.grant("change_share")
        for page in (self.list, self.one, f"{self.list}add/"):
            self.assertEqual(self.client.get(page).status_code, 403)
        self.grant("view_share", "change_share", "add_share", "delete_share")
        self.assertEqual(self.client.post(self.one, {"digest": "x"}).status_code, 403)
        self.assertEqual(self.client.get(f"{self.list}{self.row.pk}/delete/").status_code, 403)
        self.assertEqual(self.client.get(f"{self.list}add/").status_code, 403)
