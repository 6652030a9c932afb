"""Views without a check of rights: row-level security still limits every API to its caller's documents."""

import json

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.test import AsyncClient, Client, TransactionTestCase, override_settings
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from chatsite.accounts.guests import guests_welcome
from chatsite.accounts.models import ApiKey, User
from chatsite.db.threads import (
    EVERYTHING,
    in_database,
    reader_name,
)
from chatsite.tests.db.test_reader_of_a_session import nobody_by_default
from chatsite.urls import urlpatterns as site_urls
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document, Passage
from ingestion.tests.factories import make_document, make_user


def found():
    names = sorted(Document.objects.values_list("name", flat=True))
    assert len(names) == Passage.objects.count()
    return names


def forgetful(request: HttpRequest):
    return JsonResponse({"names": found()})


async def forgetful_later(request: HttpRequest):
    await request.auser()
    names = [document.name async for document in Document.objects.order_by("name")]
    assert names == await in_database(found)
    return JsonResponse({"names": names})


def forgetful_stream(request: HttpRequest):
    request.user.get_username()

    async def body():
        yield json.dumps({"names": await in_database(found)}).encode()

    return StreamingHttpResponse(body())


class Forgetful(APIView):
    required_scopes = ()

    def get(self, request):
        return Response({"names": found()})


urlpatterns = [
    path("page", login_required(forgetful)),
    path("open", forgetful),
    path("later", forgetful_later),
    path("stream", forgetful_stream),
    path("guests", guests_welcome(login_required(forgetful))),
    path("api", Forgetful.as_view()),
    path("office", admin.site.admin_view(forgetful)),
    *site_urls,
]


@override_settings(ROOT_URLCONF=__name__)
class ForgetfulViews(TransactionTestCase):
    def setUp(self):
        self.ann, self.bob = make_user("ann"), make_user("bob")
        make_document("ann.md", owner=self.ann)
        make_document("bob.md", owner=self.bob)
        make_document("all.md", everyone=True)
        set_audience(make_document("guests.md"), Audience(guests=True))
        default = nobody_by_default()
        default.__enter__()
        self.addCleanup(default.__exit__, None, None, None)

    def ask(self, address, person=None, key="", client=None):
        client = client or Client()
        if person:
            client.force_login(person)
        return client.get(address, headers={"Authorization": f"Bearer {key}"} if key else {})

    def names(self, *arguments, **more):
        return json.loads(self.ask(*arguments, **more).content)["names"]

    def key(self, person):
        return ApiKey.objects.issue(person, "test")[1]

    def test_a_page_shows_documents_of_its_reader(self):
        self.assertEqual(self.names("/page", self.ann), ["all.md", "ann.md", "guests.md"])
        self.assertEqual(self.names("/page", self.bob), ["all.md", "bob.md", "guests.md"])

    def test_a_page_without_a_reader_shows_nothing(self):
        self.assertEqual(self.names("/open", self.ann), [])
        self.assertEqual(self.names("/open"), [])

    def test_one_client_after_the_other_in_one_thread(self):
        clients = {person: Client() for person in (self.ann, self.bob, None)}
        for _ in range(3):
            for person, client in clients.items():
                names = self.names("/page" if person else "/open", person, client=client)
                self.assertEqual("ann.md" in names, person == self.ann)
                self.assertEqual("bob.md" in names, person == self.bob)

    def test_a_key_shows_documents_of_its_owner_despite_another_session(self):
        self.assertEqual(self.names("/api", key=self.key(self.ann)), ["all.md", "ann.md", "guests.md"])
        self.assertEqual(
            self.names("/api", self.bob, key=self.key(self.ann)), ["all.md", "ann.md", "guests.md"]
        )
        self.assertEqual(self.names("/api", self.bob), ["all.md", "bob.md", "guests.md"])
        self.assertEqual(self.ask("/api", self.bob, key="chs_wrong").status_code, 401)

    async def test_a_view_on_the_event_loop(self):
        client = AsyncClient()
        await client.aforce_login(self.ann)
        mine, nobodys = await client.get("/later"), await AsyncClient().get("/later")
        self.assertEqual(json.loads(mine.content)["names"], ["all.md", "ann.md", "guests.md"])
        self.assertEqual(json.loads(nobodys.content)["names"], [])

    async def test_a_stream_after_the_request_has_no_reader_until_it_sets_one(self):
        client = AsyncClient()
        await client.aforce_login(self.ann)
        answer = await client.get("/stream")
        pieces = [piece async for piece in answer]
        self.assertEqual(json.loads(b"".join(pieces))["names"], [])

    def test_a_disabled_account_has_no_reader(self):
        client = Client()
        client.force_login(self.ann)
        User.objects.filter(pk=self.ann.pk).update(is_active=False)
        self.assertEqual(client.get("/page").status_code, 302)

    @override_settings(LOGIN_REQUIRED=False)
    def test_a_guest_sees_documents_for_guests_from_the_first_page(self):
        client = Client()
        for _ in range(2):
            self.assertEqual(self.names("/guests", client=client), ["guests.md"])
        self.assertEqual(self.names("/open", client=client), [])

    def test_staff_see_everything_in_the_admin_and_only_there(self):
        staff = make_user("staff", is_staff=True)
        self.assertEqual(self.names("/office", staff), ["all.md", "ann.md", "bob.md", "guests.md"])
        self.assertEqual(self.names("/page", staff), ["all.md", "guests.md"])
        self.assertEqual(self.ask("/office", self.ann).status_code, 302)

    def test_a_request_leaves_no_reader_in_its_thread(self):
        self.names("/page", self.ann)
        self.assertEqual(found(), [])


class TheTestsThemselves(TransactionTestCase):
    def test_tests_read_everything_again_after_a_request(self):
        client = Client()
        client.force_login(make_user("ann"))
        client.get("/documents/")
        self.assertEqual(reader_name(), EVERYTHING)
