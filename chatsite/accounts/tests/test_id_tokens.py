"""ID tokens at the API: each that is not exactly ours is refused, and the right one brings its groups."""

import base64
import hashlib
import hmac
import json
import time
from unittest import mock

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import Client, TestCase, override_settings

from chatsite.accounts.models import (
    ApiKey,
    AuditEntry,
    ExternalIdentity,
    GroupMapping,
    ManagedMembership,
    User,
)
from chatsite.accounts.oidc import provider as provider_module
from chatsite.accounts.oidc.claimed_accounts import drop_unmapped_memberships, unlink
from chatsite.accounts.principal import (
    Principal,
    still_valid,
)
from chatsite.accounts.tests.fake_provider import CLIENT, KEY, OTHER_KEY, FakeProvider, public_jwk, public_pem

PATH = "/v1/models"


def encoded(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class WithProvider(TestCase):
    def setUp(self):
        self.provider = FakeProvider()
        self.enterContext(self.provider)
        self.enterContext(override_settings(**self.provider.settings))

    def ask(self, token):
        return Client().get(PATH, headers={"Authorization": f"Bearer {token}"})

    def assert_refused(self, token, why=""):
        answer = self.ask(token)
        self.assertEqual(answer.status_code, 401, why)
        self.assertFalse(User.objects.exists(), why)

    def assert_taken(self, token):
        answer = self.ask(token)
        self.assertEqual(answer.status_code, 200, answer.content)
        subject = jwt.decode(token, options={"verify_signature": False})[settings.OIDC_SUBJECT_CLAIM]
        return ExternalIdentity.objects.get(subject=subject, claim=settings.OIDC_SUBJECT_CLAIM).user


class Matrix(WithProvider):
    def test_an_expiry_beyond_the_calendar_is_shown_as_its_last_year(self):
        for end in (int(time.time()) * 1000, 10**30, 1e300):
            token = self.provider.token(exp=end)
            told = Client().get("/api/whoami", headers={"Authorization": f"Bearer {token}"})
            self.assertEqual((told.status_code, told.json()["expires_at"]), (200, "9999-01-01T00:00:00Z"))

    def test_a_valid_token_is_accepted_with_its_groups(self):
        staff, board = self.provider.mapped_group("Staff"), Group.objects.create(name="The board")
        GroupMapping.objects.create(issuer=self.provider.issuer, value="b-77", group=board)
        GroupMapping.objects.create(issuer="https://other", value="Staff", group=board)
        user = self.assert_taken(self.provider.token(groups=["Staff", "b-77", "unknown", 5, ""]))
        self.assertEqual(set(user.groups.all()), {staff, board})

    def test_an_older_token_restores_no_withdrawn_group(self):
        staff = self.provider.mapped_group("Staff")
        now = int(time.time())
        old = self.provider.token(groups=["Staff"], iat=now - 100)
        user = self.assert_taken(old)
        self.assertEqual(list(user.groups.all()), [staff])
        self.assert_taken(self.provider.token(iat=now - 50))
        self.assert_taken(old)
        self.assertFalse(user.groups.exists())
        self.assert_taken(self.provider.token(groups=["Staff"], iat=now))
        self.assertEqual(list(user.groups.all()), [staff])

    def test_an_older_token_restores_no_group_after_the_identity_was_deleted(self):
        staff = self.provider.mapped_group("Staff")
        now = int(time.time())
        old, new = self.provider.token(groups=["Staff"], iat=now - 100), self.provider.token(iat=now - 50)
        deletions = (
            lambda user: unlink(user.identities.all()),
            lambda user: user.delete(),
            lambda user: ExternalIdentity.objects.filter(user=user).delete(),
        )
        for delete in deletions:
            self.assert_taken(old)
            delete(self.assert_taken(new))
            user = self.assert_taken(old)
            self.assertFalse(user.groups.exists())
        user = self.assert_taken(self.provider.token(groups=["Staff"], iat=now))
        self.assertEqual(list(user.groups.all()), [staff])

    def test_claims(self):
        now = int(time.time())
        wrong = {
            "issuer": {"iss": "http://127.0.0.1:1"},
            "issuer with a slash": {"iss": self.provider.issuer + "/"},
            "audience": {"aud": "another"},
            "audiences": {"aud": ["another", "third"]},
            "several audiences without a party": {"aud": [CLIENT, "another"]},
            "foreign party": {"azp": "another"},
            "foreign party among several": {"aud": [CLIENT, "another"], "azp": "another"},
            "expired": {"exp": now - 60, "iat": now - 600},
            "not yet valid": {"nbf": now + 120},
            "issued in the future": {"iat": now + 120},
            "expiry is not a number": {"exp": "soon"},
            "expiry is infinite": {"exp": float("inf")},
            "expiry is true": {"exp": True},
            "subject is a number": {"sub": 5},
            "subject is empty": {"sub": " "},
            "subject is endless": {"sub": "s" * 300},
            "subject cannot be stored": {"sub": "a\x00b"},
            "subject with half a character": {"sub": "a\ud800b"},
            "group cannot be stored": {"groups": ["a", "b\x00"]},
            "group with half a character": {"groups": ["a\udfff"]},
            "only group with half a character": {"groups": "\ud800"},
            "too long": {"more": "x" * 20_000},
        }
        for name in ("exp", "iat", "iss", "sub", "aud"):
            wrong[f"without {name}"] = {name: None}
        for why, claims in wrong.items():
            with self.subTest(why):
                # PyJWT itself would not write some of these.
                payload = self.provider.payload(**claims)
                head = {"alg": "RS256", "typ": "JWT", "kid": "k1"}
                token = jwt.api_jws.encode(json.dumps(payload).encode(), KEY, "RS256", headers=head)
                self.assert_refused(token, why)

    def test_a_logout_token_is_not_accepted_for_sign_in(self):
        events = {"http://schemas.openid.net/event/backchannel-logout": {}}
        self.assert_refused(self.provider.token(events=events, sid="s-1"))

    def test_accounts_and_memberships_created_by_tokens_are_in_the_audit_log(self):
        self.provider.mapped_group("Staff")
        now = int(time.time())
        user = self.assert_taken(self.provider.token(groups=["Staff"], iat=now - 20))
        self.assert_taken(self.provider.token(groups=["Staff"], iat=now - 15))  # changes nothing
        self.assert_taken(self.provider.token(iat=now - 10))
        self.assert_taken(self.provider.token(groups=["Staff"], iat=now - 5))
        unlink(user.identities.all())
        entries = AuditEntry.objects.filter(action="account_changed", person_id=user.pk).order_by("pk")
        self.assertEqual(
            [(entry.actor, entry.subject) for entry in entries],
            [
                ("the sign-in provider", "Created the account at its first token"),
                ("the sign-in provider", "Joined Staff by a token"),
                ("the sign-in provider", "Left Staff by a token"),
                ("the sign-in provider", "Joined Staff by a token"),
                ("the sign-in provider", "Left Staff: the account was unlinked"),
            ],
        )

    def test_types(self):
        for kind in ("at+jwt", "logout+jwt", "application/at+jwt", "JOSE", "dpop+jwt", 5):
            with self.subTest(kind):
                head = {"alg": "RS256", "typ": kind, "kid": "k1"}
                signed = f"{encoded(head)}.{encoded(self.provider.payload())}"
                signature = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(
                    signed.encode(), KEY
                )
                self.assert_refused(f"{signed}.{encoded(signature)}", str(kind))

    def test_algorithms_without_a_secret_key_are_refused(self):
        unsigned = jwt.encode(self.provider.payload(), None, algorithm="none", headers={"kid": "k1"})
        self.assert_refused(unsigned, "none")
        for name in ("HS256", "hs256", "none", "None", "NONE", "RS1", "", None):
            head = encoded({"alg": name, "typ": "JWT", "kid": "k1"})
            signed = f"{head}.{encoded(self.provider.payload())}"
            for secret in (public_pem(KEY), json.dumps(self.provider.keys[0]).encode()):
                signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
                self.assert_refused(f"{signed}.{encoded(signature)}", str(name))
            self.assert_refused(f"{signed}.", str(name))

    def test_a_foreign_key_is_refused(self):
        self.assert_refused(self.provider.token(key=OTHER_KEY), "the name of a key of theirs")
        self.assert_refused(self.provider.token(key=OTHER_KEY, headers={"kid": "own"}), "another name")
        self.assert_refused(self.provider.token(headers={"kid": ""}), "an empty name")

    def test_headers_with_an_embedded_key_are_refused(self):
        jwk = public_jwk(OTHER_KEY, "k1")
        for more in (
            {"jku": "http://127.0.0.1:1/keys"},
            {"jku": f"{self.provider.issuer}/keys"},
            {"x5u": "http://127.0.0.1:1/keys"},
            {"jwk": jwk},
            {"x5c": ["AAAA"]},
            {"crit": ["exp"]},
        ):
            with self.subTest(more):
                self.assert_refused(self.provider.token(key=OTHER_KEY, headers=more))
                self.assert_refused(self.provider.token(headers=more), "signed well, but not to be believed")

    def test_malformed_tokens_are_refused(self):
        deep = encoded(b"[" * 5_000)
        for text in (
            "..",
            "a.b.c",
            "€.€.€",
            f"{deep}.{deep}.{deep}",
            "x" * 20_000 + "..",
            ". .",
            "chs_a.b.c",
        ):
            with self.subTest(text[:20]):
                self.assertEqual(self.ask(text.encode().decode("latin-1")).status_code, 401)

    def test_short_keys_and_keys_for_another_purpose_are_refused(self):
        short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
        self.provider.keys.append(public_jwk(short, "short"))
        self.provider.keys.append(public_jwk(OTHER_KEY, "enc") | {"use": "enc"})
        self.provider.keys.append(public_jwk(OTHER_KEY, "ps") | {"alg": "PS256"})
        with mock.patch("jwt.algorithms.RSAAlgorithm.check_key_length", return_value=None, create=True):
            self.assert_refused(self.provider.token(key=short, headers={"kid": "short"}))
        self.assert_refused(self.provider.token(key=OTHER_KEY, headers={"kid": "enc"}))
        self.assert_refused(self.provider.token(key=OTHER_KEY, headers={"kid": "ps"}))

    def test_other_asymmetric_algorithms_are_accepted(self):
        curve, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
        self.provider.keys += [
            json.loads(jwt.algorithms.ECAlgorithm.to_jwk(curve.public_key())) | {"kid": "ec"},
            json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(edwards.public_key())) | {"kid": "ed"},
            public_jwk(OTHER_KEY, "ps", "PS256"),
        ]
        for key, algorithm, name in (
            (curve, "ES256", "ec"),
            (edwards, "EdDSA", "ed"),
            (OTHER_KEY, "PS256", "ps"),
        ):
            token = self.provider.token(key=key, algorithm=algorithm, headers={"kid": name})
            self.assertEqual(self.ask(token).status_code, 200, algorithm)

    def test_a_small_clock_difference_is_accepted(self):
        now = int(time.time())
        self.assert_taken(self.provider.token(exp=now - 10, iat=now + 10, nbf=now + 10))

    def test_the_authorized_party_may_be_this_site_and_a_single_key_needs_no_id(self):
        self.assert_taken(self.provider.token(aud=[CLIENT, "another"], azp=CLIENT))
        head = {"alg": "RS256"}
        token = jwt.api_jws.encode(json.dumps(self.provider.payload()).encode(), KEY, "RS256", headers=head)
        self.assertNotIn("kid", jwt.get_unverified_header(token))
        self.assert_taken(token)

    def test_api_keys_work_beside_tokens(self):
        secret = ApiKey.objects.issue(User.objects.create(username="program"), "x")[1]
        self.assertEqual(self.ask(secret).status_code, 200)

    def test_without_a_provider_every_token_is_refused(self):
        token = self.provider.token()
        with override_settings(OIDC_ISSUER=""):
            self.assert_refused(token)


class People(WithProvider):
    def test_a_person_is_identified_by_the_subject_and_not_by_the_name(self):
        existing = User.objects.create_user("ann", email="ann@example.org")
        claims = {"preferred_username": "ann", "email": "ann@example.org", "email_verified": True}
        user = self.assert_taken(self.provider.token(**claims))
        self.assertNotEqual(user, existing)
        self.assertTrue(user.username.startswith("ann-"))
        self.assertFalse(user.has_usable_password())
        self.assertEqual(user.email, "")
        claims["preferred_username"] = "bob"
        self.assertEqual(self.assert_taken(self.provider.token(**claims)), user)
        self.assertEqual(User.objects.count(), 2)

    def identities(self):
        return set(ExternalIdentity.objects.values_list("claim", "subject"))

    def test_a_chosen_object_id_does_not_impersonate_another_person(self):
        victim = self.assert_taken(self.provider.token(sub="s-victim"))
        attacker = self.assert_taken(self.provider.token(sub="s-attacker"))
        for sub in ("s-attacker", "s-third"):
            forged = self.assert_taken(self.provider.token(sub=sub, oid="s-victim"))
            self.assertNotEqual(forged, victim)
        self.assertEqual(self.assert_taken(self.provider.token(sub="s-attacker")), attacker)
        self.assertNotIn("oid", {claim for claim, _ in self.identities()})

    @override_settings(OIDC_SUBJECT_CLAIM="oid")
    def test_with_the_setting_a_person_is_identified_by_the_object_id(self):
        self.ask(self.provider.token(oid="o-1", sub="pairwise-1"))
        self.ask(self.provider.token(oid="o-1", sub="pairwise-2"))
        self.assertEqual(self.identities(), {("oid", "o-1")})
        self.assertEqual(self.ask(self.provider.token(sub="pairwise-3")).status_code, 401)

    def test_equal_values_of_different_claims_are_different_people(self):
        by_sub = self.assert_taken(self.provider.token(sub="1"))
        with override_settings(OIDC_SUBJECT_CLAIM="oid"):
            by_oid = self.assert_taken(self.provider.token(sub="2", oid="1"))
        self.assertNotEqual(by_sub, by_oid)

    def linked_before(self, subject):
        """An account from before the claim was stored."""
        user = User.objects.create_user(f"user-{subject}")
        ExternalIdentity.objects.create(user=user, issuer=self.provider.issuer, subject=subject)
        return user

    def test_an_account_linked_by_sub_before_that_was_stored_is_kept(self):
        user = self.linked_before("s-1")
        self.assertEqual(self.assert_taken(self.provider.token(sub="s-1")), user)
        self.assertEqual(self.identities(), {("sub", "s-1")})

    def test_an_account_linked_by_oid_before_that_was_stored_needs_the_setting_and_gets_no_second_one(self):
        user = self.linked_before("o-1")
        self.assertEqual(self.ask(self.provider.token(sub="pairwise-1", oid="o-1")).status_code, 401)
        self.assertEqual(User.objects.count(), 1)
        with override_settings(OIDC_SUBJECT_CLAIM="oid"):
            self.assertEqual(self.assert_taken(self.provider.token(sub="pairwise-1", oid="o-1")), user)
        self.assertEqual(self.identities(), {("oid", "o-1")})

    def test_accounts_linked_by_sub_are_kept_when_the_setting_becomes_oid(self):
        user = self.assert_taken(self.provider.token(sub="s-1"))
        with override_settings(OIDC_SUBJECT_CLAIM="oid"):
            self.assertEqual(self.assert_taken(self.provider.token(sub="s-1", oid="o-1")), user)
        self.assertEqual(self.identities(), {("oid", "o-1")})

    def test_a_group_of_the_same_name_is_not_joined_without_a_mapping(self):
        board = Group.objects.create(name="Board")
        user = self.assert_taken(self.provider.token(groups=["Board"]))
        self.assertFalse(user.groups.exists())
        with override_settings(OIDC_GROUPS_BY_NAME=True):
            self.ask(self.provider.token(groups=["Board"]))
        self.assertEqual(list(user.groups.all()), [board])

    def test_older_memberships_by_name_end_and_those_by_hand_or_mapping_stay(self):
        staff, by_hand = self.provider.mapped_group("Staff"), Group.objects.create(name="Hand")
        Group.objects.create(name="Board")
        with override_settings(OIDC_GROUPS_BY_NAME=True):
            user = self.assert_taken(self.provider.token(groups=["Staff", "Board"]))
            user.groups.add(by_hand)
            self.assertEqual(drop_unmapped_memberships(), 0)
        self.assertEqual(drop_unmapped_memberships(), 1)
        self.assertEqual(set(user.groups.all()), {staff, by_hand})
        self.assertEqual(drop_unmapped_memberships(), 0)

    def test_deleting_an_identity_removes_the_memberships_of_its_tokens(self):
        self.provider.mapped_group("Staff")
        user = self.assert_taken(self.provider.token(groups=["Staff"]))
        self.client.force_login(User.objects.create_superuser("root"))
        identity = ExternalIdentity.objects.get()
        self.client.post(f"/admin/accounts/externalidentity/{identity.pk}/delete/", {"post": "yes"})
        self.assertFalse(user.groups.exists())

    def test_deleting_or_changing_a_mapping_removes_its_memberships(self):
        staff, board = self.provider.mapped_group("Staff"), self.provider.mapped_group("Board")
        user = self.assert_taken(self.provider.token(groups=["Staff", "Board"]))
        self.client.force_login(User.objects.create_superuser("root"))
        mappings = "/admin/accounts/groupmapping/"
        of_staff, of_board = GroupMapping.objects.get(group=staff), GroupMapping.objects.get(group=board)
        self.client.post(f"{mappings}{of_staff.pk}/delete/", {"post": "yes"})
        self.assertEqual(list(user.groups.all()), [board])
        other = Group.objects.create(name="Other")
        fields = {"issuer": self.provider.issuer, "value": "Board", "group": other.pk}
        self.client.post(f"{mappings}{of_board.pk}/change/", fields)
        self.assertFalse(user.groups.exists())

    def test_changing_the_value_of_a_mapping_removes_only_the_memberships_that_it_explained(self):
        staff = self.provider.mapped_group("all-staff")
        GroupMapping.objects.create(issuer=self.provider.issuer, value="board", group=staff)
        both = self.assert_taken(self.provider.token(sub="both", groups=["all-staff", "board"]))
        one = self.assert_taken(self.provider.token(sub="one", groups=["all-staff"]))
        by_hand = User.objects.create_user("eve")
        by_hand.groups.add(staff)
        self.client.force_login(User.objects.create_superuser("root"))
        mapping = GroupMapping.objects.get(value="all-staff")
        page = f"/admin/accounts/groupmapping/{mapping.pk}/change/"
        fields = {"issuer": self.provider.issuer, "value": "all-staff", "group": staff.pk}
        self.client.post(page, fields)
        self.assertEqual(set(staff.user_set.all()), {both, one, by_hand})
        self.client.post(page, fields | {"value": "council"})
        self.assertEqual(set(staff.user_set.all()), {both, by_hand})
        self.assert_taken(self.provider.token(sub="one", groups=["council"]))
        self.assertEqual(set(staff.user_set.all()), {both, one, by_hand})
        self.client.post(f"/admin/accounts/groupmapping/{mapping.pk}/delete/", {"post": "yes"})
        self.assertEqual(set(staff.user_set.all()), {both, by_hand})

    def test_a_changed_mapping_ends_memberships_whose_value_is_unknown(self):
        self.provider.mapped_group("all-staff")
        board = self.provider.mapped_group("board")
        GroupMapping.objects.create(issuer=self.provider.issuer, value="council", group=board)
        user = self.assert_taken(self.provider.token(groups=["all-staff", "board"]))
        ManagedMembership.objects.update(values=[])  # as an earlier release stored them
        self.assertEqual(drop_unmapped_memberships(), 0)
        self.client.force_login(User.objects.create_superuser("root"))
        for mapping in (GroupMapping.objects.get(value="all-staff"), GroupMapping.objects.get(value="board")):
            fields = {"issuer": mapping.issuer, "value": "other", "group": mapping.group_id}
            self.client.post(f"/admin/accounts/groupmapping/{mapping.pk}/change/", fields)
        self.assertEqual(list(user.groups.all()), [board])
        self.assert_taken(self.provider.token(groups=["all-staff", "council"]))
        self.assertEqual(ManagedMembership.objects.get().values, ["council"])

    def test_a_changed_mapping_ends_its_memberships_beside_groups_by_name(self):
        staff, named = (Group.objects.create(name=name) for name in ("Staff", "Board"))
        GroupMapping.objects.create(issuer=self.provider.issuer, value="s-1", group=staff)
        with override_settings(OIDC_GROUPS_BY_NAME=True):
            user = self.assert_taken(self.provider.token(groups=["s-1", "Board"]))
            self.assertEqual(set(user.groups.all()), {staff, named})
            GroupMapping.objects.update(value="s-2", group=named)
            self.assertEqual(drop_unmapped_memberships(), 1)
        self.assertEqual(list(user.groups.all()), [named])

    def test_names_are_made_safe(self):
        user = self.assert_taken(
            self.provider.token(
                preferred_username="<b>Ann O'Neil</b>\n", given_name="Ann\u202e", family_name="O'Neil"
            )
        )
        self.assertEqual(user.username, "b-Ann-O-Neil-b")
        self.assertEqual(user.get_full_name(), "Ann O'Neil")

    def test_a_disabled_account_is_refused(self):
        user = self.assert_taken(self.provider.token())
        User.objects.filter(pk=user.pk).update(is_active=False)
        self.assertEqual(self.ask(self.provider.token()).status_code, 401)

    def test_memberships_by_token_follow_the_claim_and_those_by_hand_stay(self):
        groups = [self.provider.mapped_group(name) for name in ("A", "B", "C")]
        user = self.assert_taken(self.provider.token(groups=["A", "B"]))
        user.groups.add(groups[2])
        self.ask(self.provider.token(groups=["B", "C"]))
        self.assertEqual(set(user.groups.all()), {groups[1], groups[2]})
        self.ask(self.provider.token())
        self.assertEqual(set(user.groups.all()), {groups[2]})

    def test_a_membership_that_was_removed_and_given_again_by_hand_stays(self):
        group, now = self.provider.mapped_group("A"), int(time.time())
        gives = (
            lambda user: user.groups.set([group]),
            group.user_set.add,
        )
        for number, give in enumerate(gives):
            sub = f"s-{number}"
            user = self.assert_taken(self.provider.token(sub=sub, groups=["A"], iat=now - 30))
            user.groups.clear()
            self.ask(self.provider.token(sub=sub, groups=["A"], iat=now - 20))
            self.assertFalse(user.groups.exists())
            give(user)
            self.ask(self.provider.token(sub=sub, iat=now - 10))
            self.assertEqual(list(user.groups.all()), [group])

    def test_an_overage_claim_gives_no_groups(self):
        self.provider.mapped_group("A")
        user = self.assert_taken(self.provider.token(groups=["A"]))
        self.assertTrue(user.groups.exists())
        overage = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "http://x"}}}
        self.ask(self.provider.token(**overage))
        self.assertFalse(user.groups.exists())

    def test_groups_come_from_the_configured_claim(self):
        group = self.provider.mapped_group("A")
        with override_settings(OIDC_GROUPS_CLAIM="roles"):
            user = self.assert_taken(self.provider.token(roles="A", groups=["B"]))
        self.assertEqual(list(user.groups.all()), [group])

    def test_a_stream_ends_with_its_token(self):
        user = User.objects.create(username="ann")
        self.assertTrue(still_valid(Principal(user.pk, "token", str(int(time.time()) + 5))))
        self.assertFalse(still_valid(Principal(user.pk, "token", str(int(time.time()) - 1))))
        User.objects.update(is_active=False)
        self.assertFalse(still_valid(Principal(user.pk, "token", str(int(time.time()) + 5))))


@pytest.mark.slow
class Fetching(WithProvider):
    def test_discovery_and_keys_are_read_once(self):
        for _ in range(5):
            self.ask(self.provider.token())
        self.assertEqual(self.provider.count("/keys"), 1)
        self.assertEqual(self.provider.count("/.well-known/openid-configuration"), 1)

    def test_an_unknown_key_is_requested_once_in_thirty_seconds(self):
        clock = mock.patch.object(provider_module.time, "monotonic", return_value=1_000.0)
        with clock as now:
            self.ask(self.provider.token())
            self.provider.keys.append(public_jwk(OTHER_KEY, "k2"))
            new = self.provider.token(key=OTHER_KEY, headers={"kid": "k2"})
            now.return_value += 10
            for _ in range(5):
                self.assertEqual(self.ask(new).status_code, 401)
            self.assertEqual(self.provider.count("/keys"), 1)
            now.return_value += 21
            self.assertEqual(self.ask(new).status_code, 200)
            self.assertEqual(self.provider.count("/keys"), 2)
            for _ in range(5):
                self.ask(self.provider.token(headers={"kid": "nobody"}))
            self.assertEqual(self.provider.count("/keys"), 2)

    def test_an_unavailable_provider_is_reported_with_503(self):
        self.provider.status = 500
        answer = self.ask(self.provider.token())
        self.assertEqual(answer.status_code, 503)
        self.assertNotIn("127.0.0.1", answer.content.decode())

    def test_known_keys_stay_valid_while_the_provider_is_unavailable(self):
        with mock.patch.object(provider_module.time, "monotonic", return_value=1_000.0) as now:
            self.ask(self.provider.token())
            self.provider.status = 500
            now.return_value += 2 * provider_module.CACHE_TTL
            self.assertEqual(self.ask(self.provider.token()).status_code, 200)

    def test_redirects_and_invalid_key_responses_are_refused(self):
        for discovery in (
            {"issuer": "https://other.example"},
            {"jwks_uri": "http://keys.example/"},
            {"jwks_uri": 5},
            {"jwks_uri": "file:///etc/passwd"},
        ):
            with self.subTest(discovery), mock.patch.dict(provider_module._providers, clear=True):
                self.provider.discovery = discovery
                self.assertEqual(self.ask(self.provider.token()).status_code, 503)
        self.provider.discovery = {}
        for keys in ([], "x", [5, {"kty": "oct", "k": "AAAA", "kid": "k1"}]):
            with self.subTest(keys), mock.patch.dict(provider_module._providers, clear=True):
                self.provider.keys = keys
                self.assertEqual(self.ask(self.provider.token()).status_code, 503)
        self.provider.status = 302
        with mock.patch.dict(provider_module._providers, clear=True):
            self.assertEqual(self.ask(self.provider.token()).status_code, 503)

    def test_only_https_or_loopback_addresses_are_accepted(self):
        for url in ("https://a.example/x", "http://127.0.0.1:5", "http://localhost/x", "http://[::1]:80/"):
            self.assertTrue(provider_module.is_safe(url), url)
        for url in (
            "http://a.example",
            "ftp://127.0.0.1",
            "http://127.0.0.1.example/",
            "//x",
            "",
            "http://[",
            "https://",
        ):
            self.assertFalse(provider_module.is_safe(url), url)
