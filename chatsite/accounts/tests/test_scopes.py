"""What an API key may be used for, and what a program learns about itself."""

from datetime import timedelta
from uuid import uuid4

from django.contrib.auth.models import Group
from django.db import connection
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings
from django.utils import timezone
from rest_framework.views import APIView

from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import ApiKey, User
from chatsite.tests.routes import routes
from ingestion.tests.factories import make_document

PATHS = {"chat": "/v1/models", "documents:read": "/content/guide.md"}


class Views(SimpleTestCase):
    def test_every_view_of_the_api_names_the_scopes_that_a_key_needs(self):
        for name, pattern in routes():
            view = getattr(pattern.callback, "cls", None)
            if view and issubclass(view, APIView):
                required = view.required_scopes
                lists = [required] if isinstance(required, tuple) else required.values()
                named = {scope for scopes in lists for scope in scopes}
                self.assertLessEqual(named, set(Scope.values), name)


class ScopeTests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada")
        make_document("guide.md", everyone=True)

    def headers(self, *scopes):
        return {"Authorization": f"Bearer {ApiKey.objects.issue(self.user, 'test', scopes=scopes)[1]}"}

    def test_a_key_allows_only_what_its_scopes_name(self):
        for scope in Scope.values:
            headers = self.headers(scope)
            for needed, path in PATHS.items():
                status = self.client.get(path, headers=headers).status_code
                self.assertEqual(status == 403, scope != needed, f"{path} with {scope}")

    def test_without_the_scope_a_key_learns_nothing(self):
        headers = self.headers("search")
        there, nowhere = (
            self.client.get(f"/content/{name}", headers=headers) for name in ("guide.md", "no.md")
        )
        self.assertEqual((there.status_code, there.content), (403, nowhere.content))
        answers = [
            self.client.put(f"/api/messages/{uuid4()}/feedback", body, headers=headers)
            for body in (b"{", b'{"rating": "good"}')
        ]
        self.assertEqual({answer.status_code for answer in answers}, {403})
        problem = answers[0].json()
        self.assertEqual(answers[0].headers["Content-Type"], "application/problem+json")
        self.assertEqual(problem["detail"], "This API key does not have the scope “chat”.")
        self.assertEqual(problem, answers[1].json())

    def test_a_key_older_than_scopes_keeps_its_abilities(self):
        secret = ApiKey.objects.issue(self.user, "old")[1]
        with connection.cursor() as cursor:  # as a process of the version before inserts it
            cursor.execute("UPDATE accounts_apikey SET scopes = DEFAULT")
        for path in PATHS.values():
            answer = self.client.get(path, headers={"Authorization": f"Bearer {secret}"})
            self.assertIn(answer.status_code, (200, 404), path)
        self.assertNotIn(Scope.DOCUMENTS_WRITE, ApiKey.objects.get().scopes)

    def test_removing_a_scope_applies_from_the_next_request(self):
        headers = self.headers("chat")
        self.assertEqual(self.client.get("/v1/models", headers=headers).status_code, 200)
        ApiKey.objects.update(scopes=["search"])
        self.assertEqual(self.client.get("/v1/models", headers=headers).status_code, 403)


class ProtocolTests(TransactionTestCase):
    def test_questions_need_the_scope_in_every_protocol(self):
        secret = ApiKey.objects.issue(User.objects.create_user("ada"), "test", scopes=["search"])[1]
        headers = {"Authorization": f"Bearer {secret}"}
        for path in ("/chat", "/chat/stream", "/ask", "/v1/chat/completions", "/v1/responses", "/api/chat"):
            answer = self.client.post(path, b"{}", "application/json", headers=headers)
            self.assertEqual(answer.status_code, 403, path)
            self.assertIn("does not have the scope", answer.content.decode(), path)


class WhoAmITests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada", first_name="Ada", last_name="Lovelace")
        self.user.groups.add(*(Group.objects.create(name=name) for name in ("Staff", "Board")))

    def test_a_program_learns_its_person_and_its_credentials(self):
        key, secret = ApiKey.objects.issue(self.user, "sync", 30, ["documents:write"])
        answer = self.client.get("/api/whoami", headers={"Authorization": f"Bearer {secret}"})
        self.assertIn("no-store", answer.headers["Cache-Control"])
        told = answer.json()
        self.assertNotIn(key.digest, answer.content.decode())
        created = told["key"].pop("created_at")
        ends = told.pop("expires_at")
        self.assertEqual(
            told,
            {
                "username": "ada",
                "name": "Ada Lovelace",
                "authenticated_by": "api_key",
                "on_behalf_of": False,
                "key": {"name": "sync", "prefix": key.prefix, "addresses": [], "acts_for_others": False},
                "scopes": ["documents:write"],
                "groups": ["Board", "Staff"],
            },
        )
        self.assertLess(created, ends)

    def test_a_session_has_every_scope(self):
        self.client.force_login(self.user)
        told = self.client.get("/api/whoami/").json()
        self.assertEqual((told["authenticated_by"], told["key"]), ("session", None))
        others = [scope for scope in Scope.values if not scope.startswith("admin:")]
        self.assertEqual((told["scopes"], told["expires_at"]), (others, None))
        User.objects.update(is_staff=True)
        self.assertEqual(self.client.get("/api/whoami/").json()["scopes"], Scope.values)

    def test_an_expired_or_revoked_key_learns_nothing(self):
        for change in ({"expires_at": timezone.now() - timedelta(1)}, {"revoked_at": timezone.now()}):
            key, secret = ApiKey.objects.issue(self.user, "old")
            ApiKey.objects.filter(pk=key.pk).update(**change)
            answer = self.client.get("/api/whoami", headers={"Authorization": f"Bearer {secret}"})
            self.assertEqual(answer.status_code, 401)
            self.assertEqual(answer.headers["Content-Type"], "application/problem+json")

    @override_settings(LOGIN_REQUIRED=False)
    def test_this_request_does_not_create_a_guest(self):
        self.assertEqual(self.client.get("/api/whoami").status_code, 401)
        self.assertFalse(User.objects.exclude(pk=self.user.pk).exists())
