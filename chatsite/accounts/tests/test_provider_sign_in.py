"""Signing in to the portal through the provider: the whole flow, and every case in which it must fail."""

from unittest import mock
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from django.test import Client, TestCase, override_settings

from chatsite.accounts.models import AuditEntry, ExternalIdentity, User
from chatsite.accounts.oidc import provider as provider_module
from chatsite.accounts.oidc import signing_in
from chatsite.accounts.tests.fake_provider import OTHER_KEY, FakeProvider, flat

START, CALLBACK = "/accounts/provider/", "/accounts/provider/callback/"


@pytest.mark.slow
class SigningIn(TestCase):
    def setUp(self):
        self.provider = FakeProvider()
        self.enterContext(self.provider)
        self.enterContext(override_settings(**self.provider.settings))
        self.client = Client()

    def begin(self, **fields):
        """The parameters that the provider gets."""
        answer = self.client.get(START, fields)
        self.assertEqual(answer.status_code, 302)
        self.assertTrue(
            answer["Location"].startswith(f"{self.provider.issuer}/authorize?"), answer["Location"]
        )
        return answer["Location"]

    def back(self, address):
        """Sign in at the provider; return the path here to which it redirects the browser."""
        with httpx2.Client(trust_env=False) as browser:
            location = browser.get(address).headers["Location"]
        self.assertTrue(location.startswith(f"http://testserver{CALLBACK}?"))
        return location.removeprefix("http://testserver")

    def refused(self, path, client=None):
        client = client or self.client
        answer = client.get(path, follow=True)
        self.assertEqual(answer.redirect_chain[-1][0], "/accounts/sign-in/")
        self.assertNotIn("_auth_user_id", client.session)
        self.assertFalse(User.objects.exists())
        return answer.content.decode()

    def test_the_complete_flow_signs_in(self):
        group = self.provider.mapped_group("Staff")
        self.provider.claims = {"preferred_username": "ann", "groups": ["Staff"]}
        self.assertContains(
            self.client.get("/accounts/sign-in/?next=/documents/"), "Sign in with Example Works"
        )
        answer = self.client.get(self.back(self.begin(next="/documents/")))
        self.assertRedirects(answer, "/documents/")
        user = ExternalIdentity.objects.get().user
        self.assertEqual((user.username, list(user.groups.all())), ("ann", [group]))
        self.assertEqual(self.client.session["_auth_user_id"], str(user.pk))
        self.client.logout()
        self.client.get(self.back(self.begin()))
        self.assertEqual(User.objects.get(), user)

    def test_the_request_has_state_nonce_and_a_hashed_verifier(self):
        asked = flat(urlsplit(self.begin()).query)
        self.assertEqual((asked["tenant"], asked["response_type"]), ("1", "code"))
        self.assertEqual((asked["code_challenge_method"], asked["scope"]), ("S256", "openid profile"))
        again = flat(urlsplit(self.begin()).query)
        for name in ("state", "nonce", "code_challenge"):
            self.assertGreaterEqual(len(asked[name]), 43)
            self.assertNotEqual(asked[name], again[name])

    def test_sign_in_and_tokens_lead_to_the_same_account(self):
        self.client.get("/v1/models", headers={"Authorization": f"Bearer {self.provider.token()}"})
        self.client.get(self.back(self.begin()))
        self.assertEqual(User.objects.count(), 1)
        self.assertIn("_auth_user_id", self.client.session)

    def test_a_retry_after_a_failure_leads_to_the_requested_page(self):
        state = flat(urlsplit(self.begin(next="/documents/")).query)["state"]
        answer = self.client.get(CALLBACK, {"error": "access_denied", "state": state}, follow=True)
        self.assertEqual(answer.redirect_chain[-1][0], "/accounts/sign-in/?next=%2Fdocuments%2F")
        self.assertContains(answer, "Example Works did not sign you in. Try again.")
        self.assertContains(answer, f'href="{START}?next=%2Fdocuments%2F"')
        answer = self.client.get(
            CALLBACK, {"state": "foreign"}, follow=True, headers={"Accept-Language": "de"}
        )
        self.assertEqual(answer.redirect_chain[-1][0], "/accounts/sign-in/")
        self.assertContains(answer, "Example Works hat Sie nicht angemeldet. Versuchen Sie es noch einmal.")

    def test_signing_out_shows_a_link_to_sign_out_of_the_provider(self):
        self.provider.discovery = {"end_session_endpoint": f"{self.provider.issuer}/end?tenant=1"}
        self.client.get(self.back(self.begin()))
        answer = self.client.post("/accounts/sign-out/", follow=True)
        self.assertNotIn("_auth_user_id", self.client.session)
        self.assertContains(answer, f"{self.provider.issuer}/end?tenant=1&amp;client_id=chatsite")
        self.assertNotContains(self.client.get("/accounts/sign-in/"), "/end?tenant=1")

    def test_the_link_is_hidden_from_people_who_did_not_sign_in_through_the_provider(self):
        self.provider.discovery = {"end_session_endpoint": f"{self.provider.issuer}/end"}
        self.client.force_login(User.objects.create_user("local"))
        answer = self.client.post("/accounts/sign-out/", follow=True)
        self.assertEqual(answer.redirect_chain, [("/accounts/sign-in/", 302)])
        self.assertNotContains(answer, "/end")

    def test_a_foreign_reused_or_old_state_is_refused(self):
        path = self.back(self.begin())
        self.refused(path, Client())
        other = Client()
        other.get(START)
        self.refused(path, other)
        with mock.patch.object(signing_in, "ATTEMPT_SECONDS", -1):
            self.refused(path)
        self.refused(path)  # removed by the first attempt

    def test_a_code_without_its_verifier_is_refused(self):
        path = self.back(self.begin())
        session = self.client.session
        for attempt in (attempts := session[signing_in.IN_SESSION]).values():
            attempt["verifier"] = "x" * 64
        session[signing_in.IN_SESSION] = attempts
        session.save()
        self.refused(path)

    def test_a_wrong_nonce_and_invalid_tokens_are_refused(self):
        for claims in (
            {"nonce": "another"},
            {"nonce": None},
            {"aud": "another"},
            {"iss": "http://127.0.0.1:1"},
            {"exp": 5},
            {"key": OTHER_KEY},
        ):
            with self.subTest(claims):
                self.provider.claims = claims
                self.refused(self.back(self.begin()))

    def test_errors_of_the_provider_and_responses_of_another_are_refused(self):
        state = parse_qs(urlsplit(self.begin()).query)["state"][0]
        shown = self.refused(f"{CALLBACK}?state={state}&error=access_denied&error_description=<b>x</b>")
        self.assertIn("Example Works did not sign you in", shown)
        self.assertNotIn("<b>x", shown)
        path = self.back(self.begin())
        self.refused(path.replace("iss=http", "iss=ftp"))
        self.refused(CALLBACK)
        self.refused(f"{CALLBACK}?state=%00&code=%00")

    def test_an_unavailable_provider_is_reported(self):
        self.provider.status = 500
        self.assertIn("cannot be reached", self.refused(START))

    def test_a_provider_that_becomes_unavailable_during_the_flow_is_reported(self):
        path = self.back(self.begin())
        self.provider.status = 503
        self.assertIn("cannot be reached", self.refused(path))

    def test_a_dripping_provider_is_given_up(self):
        for slow in ("head", "body"):
            path = self.back(self.begin())
            self.provider.slow = slow
            with self.subTest(slow), mock.patch.object(provider_module, "TIMEOUT", 0.2):
                self.assertIn("cannot be reached", self.refused(path))
            self.provider.slow = ""

    def test_a_disabled_account(self):
        self.client.get(self.back(self.begin()))
        self.client.logout()
        User.objects.update(is_active=False)
        answer = self.client.get(self.back(self.begin()), follow=True)
        self.assertContains(answer, "Your account here is switched off")
        self.assertNotIn("_auth_user_id", self.client.session)

    def refusals(self):
        found = AuditEntry.objects.filter(action="sign_in_refused").order_by("pk")
        return list(found.values_list("person", "subject"))

    def test_a_refused_disabled_account_is_in_both_logs(self):
        self.provider.claims = {"preferred_username": "ann"}
        self.client.get(self.back(self.begin()))
        self.client.logout()
        User.objects.update(is_active=False)
        with self.assertLogs("chatsite.accounts", "WARNING") as logged:
            self.client.get(self.back(self.begin()))
        reason = "by Example Works: The account is disabled"
        self.assertEqual(self.refusals(), [("ann", f"{reason}; from 127.0.0.1")])
        self.assertIn(f"Sign-in refused: {reason}, for “ann”, from 127.0.0.1", logged.output[0])

    def test_an_account_that_is_linked_by_another_claim_is_in_the_audit_log(self):
        self.client.get(self.back(self.begin()))
        self.client.logout()
        identity = ExternalIdentity.objects.get()
        self.provider.claims = {"sub": "another", "oid": identity.subject}
        ExternalIdentity.objects.update(claim="oid")
        self.client.get(self.back(self.begin()))
        ((person, subject),) = self.refusals()
        self.assertEqual(person, identity.user.username)
        self.assertIn("linked by the claim `oid`", subject)

    def test_failed_sign_ins_are_in_the_audit_log_but_repetitions_do_not_fill_it(self):
        for _ in range(15):
            self.client.get(CALLBACK, {"state": "foreign"})
        subject = "by Example Works: The state does not belong to this session; from 127.0.0.1"
        self.assertEqual(self.refusals(), [("", subject)] * 10)
        self.client.get(CALLBACK, {"state": "foreign"}, REMOTE_ADDR="192.0.2.7")
        self.assertEqual(len(self.refusals()), 11)

    def test_sign_in_never_redirects_to_another_site(self):
        for wanted in ("https://evil.example/", "//evil.example", "javascript:alert(1)", "\\\\evil.example"):
            self.client.logout()
            answer = self.client.get(self.back(self.begin(next=wanted)))
            self.assertEqual(answer["Location"], "/")

    def test_many_attempts_do_not_fill_the_session(self):
        for _ in range(12):
            self.begin()
        self.assertEqual(len(self.client.session[signing_in.IN_SESSION]), signing_in.MAX_ATTEMPTS)

    def test_without_a_provider_the_site_has_no_trace_of_it(self):
        with override_settings(OIDC_ISSUER=""):
            self.assertEqual(self.client.get(START).status_code, 404)
            self.assertEqual(self.client.get(CALLBACK).status_code, 404)
            self.assertNotContains(self.client.get("/accounts/sign-in/"), "Example Works")
