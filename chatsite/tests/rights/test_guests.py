"""Guests, who have no account: how they are created, what they see, and how they are removed."""

import json
from datetime import timedelta

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import Group
from django.test import AsyncClient, Client, SimpleTestCase, TransactionTestCase, override_settings
from django.utils import timezone

from chat.models import Run
from chatsite.accounts import guests
from chatsite.accounts.models import User
from chatsite.accounts.principal import (
    Principal,
    still_valid,
)
from chatsite.asgi import application
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.routes import routes
from history.models import Conversation
from ingestion.access.explain import why_readable
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document
from ingestion.search import name_resolution, retrieval
from ingestion.tests.factories import make_document, make_user

QUESTION = "How many days of leave may employees carry over?"
JSON = {"content_type": "application/json"}


def asked(question=QUESTION):
    return json.dumps({"messages": [{"role": "user", "content": question}]})


class WithGuests(TransactionTestCase):
    def setUp(self):
        self.open = make_document("open.md", title="Leave guide")
        set_audience(self.open, Audience(guests=True))
        self.internal = make_document(
            "internal.md", ("Employees may carry over nine days of leave in secret.",), everyone=True
        )


@override_settings(LOGIN_REQUIRED=False)
class GuestsAreServed(WithGuests):
    def enter(self):
        client = Client()
        client.get("/")
        return client, User.objects.filter(guest_until__isnull=False).latest("pk")

    def test_the_first_page_creates_a_guest_and_later_ones_keep_it(self):
        client, guest = self.enter()
        self.assertEqual(client.get("/documents/").status_code, 200)
        self.assertEqual(User.objects.filter(guest_until__isnull=False).get(), guest)
        self.assertFalse(guest.has_usable_password())

    def test_a_guest_sees_only_what_is_marked_for_guests(self):
        client, guest = self.enter()
        principal = Principal(guest.pk, "guest", client.session.session_key)
        self.assertEqual(list(Document.objects.visible_to(principal)), [self.open])
        found = retrieval.search(principal, QUESTION, top=20)
        self.assertEqual({passage.document_id for passage in found.passages}, {self.open.pk})
        self.assertEqual(retrieval.count_readable(principal), 1)
        self.assertIsNone(name_resolution.resolve(principal, "internal.md"))
        listed = client.get("/documents/").content.decode()
        self.assertIn("open.md", listed)
        self.assertNotIn("internal.md", listed)
        self.assertEqual(client.get(f"/documents/{self.internal.public_id}/").status_code, 404)
        self.assertEqual(client.get(f"/documents/{self.open.public_id}/").status_code, 200)
        self.assertEqual(client.get("/content/internal.md").status_code, 404)

    def test_no_page_invites_a_guest_to_add_documents(self):
        client, _ = self.enter()
        for hidden in (False, True):
            for path in ("/", "/documents/", "/documents/?show=mine"):
                with self.subTest(path, hidden=hidden):
                    self.assertNotIn("/documents/add/", client.get(path).content.decode())
            set_audience(self.open, Audience(everyone=True))
        self.assertIn("Guests cannot read any documents yet.", client.get("/").content.decode())

    def test_signed_in_people_see_documents_for_guests_too(self):
        principal = Principal(make_user().pk, "command")
        self.assertEqual(set(Document.objects.visible_to(principal)), {self.open, self.internal})
        self.assertEqual(retrieval.count_readable(principal), 2)
        self.assertEqual(
            why_readable(principal, self.open), ["Everyone may read it, even without signing in."]
        )

    def test_documents_for_a_group_still_require_membership(self):
        document = make_document("hr.md", groups=(Group.objects.create(name="HR"),))
        client, guest = self.enter()
        principal = Principal(guest.pk, "guest", client.session.session_key)
        self.assertNotIn(document, Document.objects.visible_to(principal))

    def test_pages_for_accounts_lead_guests_to_sign_in(self):
        client, _ = self.enter()
        for path in ("/settings/", "/settings/keys/", "/documents/add/", "/help/"):
            answer = client.get(path)
            self.assertEqual(
                (answer.status_code, answer["Location"].split("?")[0]), (302, "/accounts/sign-in/")
            )
        self.assertEqual(client.get("/admin/").status_code, 302)
        self.assertContains(client.get("/accounts/sign-in/"), "Password")

    def test_an_api_for_accounts_tells_a_guest_so_and_keeps_their_session(self):
        client, _ = self.enter()
        for path in ("/api/whoami", "/api/documents", "/api/webhooks"):
            answer = client.get(path)
            self.assertEqual(
                (answer.status_code, answer.json()["detail"]),
                (401, "This is for people with an account. Sign in."),
            )
            self.assertNotIn("sessionid", answer.cookies)

    def test_a_guest_asks_through_the_api_and_is_answered_from_documents_for_guests(self):
        answer = Client().post("/chat", asked(), **JSON)
        self.assertEqual(answer.status_code, 200, answer.content)
        self.assertIn("five days", answer.json()["message"]["content"])
        self.assertNotIn("nine days", answer.content.decode())

    def test_a_guest_continues_on_the_sites_own_pages_without_a_token(self):
        client = Client(enforce_csrf_checks=True)
        own = {"Sec-Fetch-Site": "same-origin"}
        session = client.post("/chat", asked(), headers=own, **JSON).json()["session_state"]
        body = json.loads(asked()) | {"session_state": session}
        second = client.post("/chat", json.dumps(body), headers=own, **JSON)
        self.assertEqual((second.status_code, second.json()["session_state"]), (200, session))
        self.assertEqual(len(client.get("/chat-history").json()), 1)

    def test_the_api_never_replaces_an_existing_session(self):
        for path in ("/chat", "/api/chat", "/chat-history", "/v1/chat/completions"):
            with self.subTest(path):
                client = Client()
                client.cookies["sessionid"] = "0" * 32
                answer = client.post(path, asked(), **JSON)
                self.assertEqual(answer.status_code, 401)
                # Removes the cookie, which belonged to no session.
                self.assertEqual(answer.cookies["sessionid"].value, "")
                self.assertEqual(client.post(path, asked(), **JSON).status_code // 100, 2)
        self.assertEqual(User.objects.filter(guest_until__isnull=False).count(), 4)

    def test_the_api_does_not_turn_a_disabled_account_into_a_guest(self):
        user = make_user("ann")
        client = Client()
        client.force_login(user)
        User.objects.filter(pk=user.pk).update(is_active=False)
        answer = client.post("/chat", asked(), **JSON)
        self.assertEqual(answer.status_code, 401)
        if "sessionid" in answer.cookies:
            self.assertEqual(answer.cookies["sessionid"].value, "")  # removed, and not replaced
        self.assertFalse(User.objects.filter(guest_until__isnull=False).exists())

    def test_the_second_request_of_a_guest_needs_the_csrf_token_like_any_with_a_cookie(self):
        client = Client(enforce_csrf_checks=True)
        self.assertEqual(client.post("/chat", asked(), **JSON).status_code, 200)
        self.assertEqual(client.post("/chat", asked(), **JSON).status_code, 403)
        token = client.cookies["csrftoken"].value
        again = client.post("/chat", asked(), headers={"X-CSRFToken": token}, **JSON)
        self.assertEqual(again.status_code, 200)
        self.assertEqual(User.objects.filter(guest_until__isnull=False).count(), 1)

    def test_a_wrong_key_is_refused_and_never_taken_for_a_guest(self):
        answer = Client().post("/chat", asked(), headers={"Authorization": "Bearer chs_wrong"}, **JSON)
        self.assertEqual(answer.status_code, 401)
        self.assertFalse(User.objects.filter(guest_until__isnull=False).exists())

    def test_two_guests_do_not_see_each_others_conversations(self):
        one, first = self.enter()
        two, second = self.enter()
        self.assertNotEqual(first, second)
        conversation = Conversation.objects.create(owner=first, title="Leave")
        self.assertEqual(one.get(f"/c/{conversation.pk}/").status_code, 200)
        self.assertEqual(two.get(f"/c/{conversation.pk}/").status_code, 404)
        self.assertNotContains(two.get("/chat-history"), str(conversation.pk))

    def test_an_expired_guest_is_deleted_with_all_conversations(self):
        client, guest = self.enter()
        Conversation.objects.create(owner=guest, title="x")
        principal = Principal(guest.pk, "guest", client.session.session_key)
        self.assertTrue(still_valid(principal))
        self.assertEqual(guests.purge(), 0)
        User.objects.filter(pk=guest.pk).update(guest_until=timezone.now() - timedelta(seconds=1))
        self.assertEqual(guests.purge(), 1)
        self.assertFalse(still_valid(principal))
        self.assertFalse(Conversation.objects.exists())
        self.assertFalse(User.objects.filter(pk=guest.pk).exists())

    def test_signing_in_ends_being_a_guest(self):
        client, _ = self.enter()
        user = User.objects.create_user("ann", password="correct horse")
        answer = client.post("/accounts/sign-in/", {"username": "ann", "password": "correct horse"})
        self.assertEqual(answer.status_code, 302)
        self.assertEqual(client.session["_auth_user_id"], str(user.pk))

    def test_requiring_accounts_again_ends_guest_sessions_at_once(self):
        client, guest = self.enter()
        principal = Principal(guest.pk, "guest", client.session.session_key)
        with override_settings(LOGIN_REQUIRED=True):
            self.assertEqual(client.get("/").status_code, 302)
            self.assertEqual(client.post("/chat", asked(), **JSON).status_code, 401)
            self.assertFalse(still_valid(principal))

    async def test_guests_are_created_off_the_event_loop(self):
        answer = await AsyncClient().get("/")
        self.assertEqual(answer.status_code, 200)


class AccountsAreRequired(WithGuests):
    def test_without_guest_access_nobody_becomes_a_guest(self):
        self.assertEqual(Client().get("/").status_code, 302)
        self.assertEqual(Client().post("/chat", asked(), **JSON).status_code, 401)
        self.assertEqual(Client().get("/chat-history").status_code, 401)
        self.assertFalse(User.objects.filter(guest_until__isnull=False).exists())
        self.assertFalse(Run.objects.exists())

    def test_documents_cannot_be_marked_for_guests_without_guest_access(self):
        client = Client()
        client.force_login(make_user("ann"))
        owned = make_document("mine.md", owner=User.objects.get(username="ann"))
        answer = client.post(f"/documents/{owned.public_id}/rights/", {"who": "guests", "confirmed": "yes"})
        self.assertEqual(answer.status_code, 422)


@override_settings(LOGIN_REQUIRED=False)
class MarkingForGuests(WithGuests):
    def test_marking_for_guests_asks_first_and_says_who_will_read_the_document(self):
        user = make_user("ann")
        client = Client()
        client.force_login(user)
        owned = make_document("mine.md", owner=user, everyone=True)
        path = f"/documents/{owned.public_id}/rights/"
        self.assertContains(client.post(path, {"who": "guests"}), "even without an account")
        client.post(path, {"who": "guests", "confirmed": "yes"})
        owned.refresh_from_db()
        self.assertTrue(owned.access_list.entries.filter(guests=True).exists())
        self.assertContains(client.get("/documents/"), "Everyone, including guests")


@pytest.mark.slow
@override_settings(LOGIN_REQUIRED=False)
class EveryDoor(WithGuests):
    async def test_each_protocol_answers_guests_from_documents_for_guests_whole_and_streamed(self):
        for path in (
            "/chat", "/chat/stream", "/ask", "/ask/stream", "/api/chat", "/api/chat/stream",
            "/api/chat/batch", "/api/minimal/chat", "/api/multi-agent-chat", "/v1/chat/completions",
        ):  # fmt: skip
            with self.subTest(path):
                answer = await AsyncClient().post(path, asked(), **JSON)
                self.assertEqual(answer.status_code, 200)
                text = await read(answer)
                self.assertIn("open.md", text)
                self.assertNotIn("internal.md", text)
                self.assertNotIn("nine days", text)

    async def test_models_history_and_files_are_open_to_guests(self):
        client = AsyncClient()
        self.assertEqual((await client.get("/v1/models")).status_code, 200)
        self.assertEqual((await client.get("/chat-history")).json(), [])
        self.assertEqual((await client.get("/content/internal.md")).status_code, 404)

    async def test_the_socket_is_open_to_the_guest_whose_conversation_it_is(self):
        mine, other = AsyncClient(), AsyncClient()
        for client in (mine, other):
            await client.get("/")
        guest = await User.objects.filter(guest_until__isnull=False).aearliest("pk")
        conversation = await Conversation.objects.acreate(owner=guest, title="Leave")
        self.assertEqual((await knock(conversation, mine))["type"], "websocket.accept")
        self.assertEqual((await knock(conversation, other))["type"], "websocket.close")
        with override_settings(LOGIN_REQUIRED=True):
            self.assertEqual((await knock(conversation, mine))["type"], "websocket.close")


async def read(answer):
    if answer.streaming:
        return b"".join([chunk async for chunk in answer.streaming_content]).decode()
    return answer.content.decode()


async def knock(conversation, client):
    """The first message of the conversation's socket."""
    cookies = client.cookies.output(header="", sep=";").strip()
    headers = [(b"origin", b"http://localhost"), (b"host", b"localhost"), (b"cookie", cookies.encode())]
    scope = {"type": "websocket", "path": f"/ws/c/{conversation.pk}/", "query_string": b""}
    socket = ApplicationCommunicator(application, scope | {"subprotocols": [], "headers": headers})
    await socket.send_input({"type": "websocket.connect"})
    answer = await socket.receive_output(timeout=HANG_SECONDS)
    await socket.send_input({"type": "websocket.disconnect", "code": 1000})
    await socket.wait(timeout=HANG_SECONDS)
    return answer


class WhatIsOpen(SimpleTestCase):
    def test_exactly_these_views_welcome_guests(self):
        welcoming = {name for name, pattern in routes() if guests.welcomes(pattern.callback)}
        others = {name for name, _ in routes()} - welcoming
        pages = {
            f"ingestion:{name}"
            for name in ("documents", "document", "changes", "status", "content", "page-image")
        }
        namespaces = {"chat", "chat-api", "history", "mcp"}
        self.assertEqual({name for name in welcoming if name.partition(":")[0] not in namespaces}, pages)
        # Requests of a front end before anybody has signed in, with the same response for everyone.
        configuration = {"chat:auth-setup", "chat:config", "mcp:resource-metadata"}
        # The texts and the logo of the site, also before signing in.
        configuration |= {"chat:privacy", "chat:banner", "chat:logo"}
        # For callers with an account, because it costs the operator money and answers no question.
        accounts_only = {"chat-api:embeddings"}
        accounts_only |= {
            "chat:own-data",
            "chat:hints-seen",
            "chat:attach",
            "chat:attach-to-conversation",
        }
        # Guests cannot share, and nothing is shared with them.
        accounts_only |= {name for name in others if "share" in name and not name.startswith("admin:")}
        accounts_only |= {name for name in others if "project" in name} | {"chat:move"}
        self.assertEqual(
            {name for name in others if name.partition(":")[0] in namespaces}, configuration | accounts_only
        )
