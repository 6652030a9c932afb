"""The resource of webhooks: who may have one, which addresses are taken, deliveries and their replay."""

import json
from datetime import timedelta
from ipaddress import ip_address, ip_network
from unittest.mock import patch

import pytest
from django.test import TestCase, override_settings
from django.utils import timezone

from chatsite.accounts import webhooks
from chatsite.accounts.models import ApiKey, AuditEntry, User, WebhookDelivery, WebhookEndpoint
from chatsite.accounts.tests.test_webhooks import RECEIVER, WebhookCase
from chatsite.accounts.webhooks import addresses


class AddressTests(TestCase):
    @override_settings(WEBHOOK_NETWORKS=[ip_network("10.1.0.0/16")])
    def test_internal_addresses_are_refused_in_every_form(self):
        for address in (
            "127.0.0.1", "10.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
            "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff02::1",
            "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1",
            "2002:a00:1::1", "240.0.0.1", "198.18.0.1", "192.0.0.8", "3fff::1", "168.63.129.16",
        ):  # fmt: skip
            with self.subTest(address), self.assertRaises(addresses.Forbidden):
                addresses.check_address(ip_address(address), encrypted=True)
        for address in (
            "93.184.215.14",
            "2606:2800:21f:cb07::1",
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "::ffff:93.184.215.14",
        ):
            addresses.check_address(ip_address(address), encrypted=True)
        addresses.check_address(ip_address("10.1.2.3"), encrypted=False)
        with self.assertRaises(addresses.Forbidden):
            addresses.check_address(ip_address("93.184.215.14"), encrypted=False)

    def test_invalid_addresses_are_refused(self):
        for url in (
            "http://example.org/", "ftp://example.org/", "https://", "https://a:b@example.org/",
            "example.org",
            "https://127.0.0.1/", "https://[::1]/", "https://exämple.org/", "https://example.org:99999/",
            "https://example.org/ a", "https://example.org/\n", "https://[::1", "https://" + "a" * 2_000,
            "https://a" + "\u0301\u0316" * 200_000,  # splitting it would take hours
        ):  # fmt: skip
            with self.subTest(url[:40]), self.assertRaises(addresses.Forbidden):
                addresses.check_url(url)
        addresses.check_url("https://example.org/hooks?token=1")


@pytest.mark.slow
class WebhookApiTests(WebhookCase):
    def setUp(self):
        super().setUp()
        _, self.key = ApiKey.objects.issue(self.ann, "hooks", scopes=["webhooks"])

    def call(self, method, path="", data=None, key=None):
        body = {} if data is None else {"data": json.dumps(data), "content_type": "application/json"}
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return getattr(self.client, method)(f"/api/webhooks{path}", headers=headers, **body)

    def make(self, **values):
        asked = {"url": f"http://127.0.0.1:{self.server.server_port}/", "events": ["document.ready"]} | values
        return self.call("post", data=asked)

    def test_a_webhook_is_created_changed_tested_replayed_and_deleted(self):
        made = self.make(name="ERP").json()
        self.assertTrue(made["secret"].startswith("whsec_"))
        listed = self.call("get").json()
        self.assertEqual([each["id"] for each in listed], [made["id"]])
        self.assertNotIn("secret", listed[0])
        self.assertNotIn(made["secret"], str(WebhookEndpoint.objects.values_list("secret", flat=True)))
        one = f"/{made['id']}"
        tested = self.call("post", f"{one}/test")
        self.assertEqual((tested.status_code, len(self.deliver())), (202, 1))
        headers, body = self.server.got[0]
        RECEIVER.verify(made["secret"], headers, body)
        (delivery,) = self.call("get", f"{one}/deliveries").json()
        self.assertEqual((delivery["state"], delivery["message_id"]), ("delivered", headers["webhook-id"]))
        replayed = self.call("post", f"{one}/deliveries/{delivery['id']}/replay")
        self.assertEqual((replayed.status_code, len(self.deliver())), (202, 1))
        renewed = self.call("post", f"{one}/secret").json()["secret"]
        self.call("post", f"{one}/test")
        self.deliver()
        for secret in (made["secret"], renewed):
            RECEIVER.verify(secret, *self.server.got[-1])
        WebhookEndpoint.objects.update(active=False, reason="x", failing_since=timezone.now())
        changed = self.call(
            "patch", one, {"active": True, "events": ["answer.feedback", "document.ready"]}
        ).json()
        self.assertEqual((changed["active"], changed["reason"], changed["failing_since"]), (True, "", None))
        self.assertEqual(changed["events"], ["document.ready", "answer.feedback"])
        self.assertEqual(self.call("delete", one).status_code, 204)
        self.assertEqual(self.call("get", one).status_code, 404)
        log = AuditEntry.objects.filter(action="webhook_changed", actor="ann")
        self.assertEqual(log.count(), 4)

    def test_concurrent_changes_do_not_overwrite_each_other(self):
        made = self.make().json()
        one, asked = f"/{made['id']}", {"url": "https://example.org/"}

        def meanwhile(*path):
            return patch(
                "chatsite.accounts.webhooks.webhook_api.check_url",
                side_effect=lambda url: self.call("delete" if not path else "post", one + "".join(path)),
            )

        with meanwhile("/secret"):
            self.assertEqual(self.call("patch", one, asked).status_code, 200)
        endpoint = WebhookEndpoint.objects.get()
        self.assertEqual((endpoint.url, endpoint.former_secret != ""), (asked["url"], True))
        with meanwhile():
            self.assertEqual(self.call("patch", one, asked).status_code, 404)
        self.assertFalse(WebhookEndpoint.objects.exists())

    def test_a_webhook_ends_with_its_key_unless_another_key_takes_it_over(self):
        made = self.make().json()
        ApiKey.objects.update(revoked_at=timezone.now())
        self.add(owner=self.ann)
        self.assertEqual(self.deliver(), [])
        delivery = WebhookDelivery.objects.get()
        self.assertEqual((delivery.state, "is revoked" in delivery.detail), ("failed", True))
        _, key = ApiKey.objects.issue(self.ann, "new", scopes=["webhooks"])
        self.assertEqual(self.call("patch", f"/{made['id']}", {}, key).status_code, 200)
        webhooks.replay(WebhookDelivery.objects.all())
        self.assertEqual(len(self.deliver()), 1)

    def test_invalid_input_is_refused_with_its_member(self):
        for values, member in (
            ({"url": "http://example.com/"}, None),
            ({"url": "https://10.0.0.1/"}, "/url"),
            ({"url": "ftp://127.0.0.1/"}, "/url"),
            ({"events": []}, "/events"),
            ({"events": ["document.read"]}, "/events/0"),
            ({"events": "document.ready"}, "/events"),
            ({"active": "yes"}, "/active"),
            ({"name": "x" * 101}, "/name"),
        ):
            with self.subTest(values):
                refused = self.make(**values)
                if member:
                    self.assertEqual(
                        (refused.status_code, refused.json()["errors"][0]["pointer"]), (400, member)
                    )
        WebhookEndpoint.objects.all().delete()
        for _ in range(10):
            self.assertEqual(self.make().status_code, 201)
        self.assertEqual(self.make().status_code, 409)

    def test_tests_and_replays_beyond_the_limit_are_refused_while_they_wait(self):
        made, other = self.make().json(), self.make().json()
        one = f"/{made['id']}"
        endpoint = WebhookEndpoint.objects.get(pk=made["id"])
        for _ in range(30):
            webhooks.enqueue(endpoint, "document.ready", {})  # waiting events do not count
        endpoint.deliveries.update(state="failed", attempts=11, attempted_at=timezone.now(), next_at=None)
        ended = list(endpoint.deliveries.all())
        for _ in range(10):
            webhooks.enqueue(endpoint, "document.ready", {})
        tested = [self.call("post", f"{one}/test").status_code for _ in range(12)]
        replays = [f"{one}/deliveries/{each.pk}/replay" for each in ended]
        replayed = [self.call("post", path).status_code for path in replays[:12]]
        self.assertEqual((tested, replayed), ([202] * 12, [202] * 8 + [429] * 4))
        refused = self.call("post", f"{one}/test")
        self.assertEqual((refused.status_code, refused.headers["Retry-After"]), (429, "10"))
        self.assertEqual(refused.headers["Content-Type"], "application/problem+json")
        self.assertEqual(self.call("post", replays[0]).status_code, 202)  # waits already: nothing is added
        self.assertEqual(endpoint.deliveries.filter(state="waiting").count(), 10 + 20)
        self.assertEqual(self.call("post", f"/{other['id']}/test").status_code, 202)
        endpoint.refresh_from_db()
        later = [sent - timedelta(minutes=1) for sent in endpoint.sent_by_hand]
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(sent_by_hand=later)
        self.assertEqual(self.call("post", replays[20]).status_code, 429)  # those before it wait
        endpoint.deliveries.filter(state="waiting").update(state="delivered", attempted_at=timezone.now())
        self.assertEqual(self.call("post", replays[20]).status_code, 202)

    def test_manual_deliveries_are_limited_even_if_the_receiver_answers_at_once(self):
        made = self.make().json()
        endpoint = WebhookEndpoint.objects.get(pk=made["id"])
        delivery = webhooks.enqueue(endpoint, "document.ready", {})
        asked = []
        for path in [f"/{made['id']}/deliveries/{delivery.pk}/replay"] * 18 + [f"/{made['id']}/test"] * 4:
            endpoint.deliveries.update(state="delivered", attempts=1, attempted_at=timezone.now())
            asked.append(self.call("post", path).status_code)
        self.assertEqual(asked, [202] * 20 + [429] * 2)

    def test_other_people_and_keys_without_the_scope_find_nothing(self):
        made = self.make().json()
        delivery = self.call("post", f"/{made['id']}/test").json()
        _, foreign = ApiKey.objects.issue(self.bob, "hooks", scopes=["webhooks"])
        _, narrow = ApiKey.objects.issue(self.ann, "chat", scopes=["chat", "documents:write"])
        one = f"/{made['id']}"
        for method, path in (
            ("get", one),
            ("patch", one),
            ("delete", one),
            ("post", f"{one}/secret"),
            ("post", f"{one}/test"),
            ("get", f"{one}/deliveries"),
            ("post", f"{one}/deliveries/{delivery['id']}/replay"),
        ):
            data = {} if method in ("patch", "post") else None
            self.assertEqual(self.call(method, path, data, foreign).status_code, 404, path)
            self.assertEqual(self.call(method, path, data, narrow).status_code, 403, path)
        self.assertEqual(self.call("get", key=foreign).json(), [])
        self.assertEqual(self.call("get", key=narrow).status_code, 403)

    def test_staff_see_only_hosts_and_can_disable_and_replay(self):
        made = self.make(url=f"http://127.0.0.1:{self.server.server_port}/token-in-the-path").json()
        self.server.status = 500
        self.call("post", f"/{made['id']}/test")
        self.deliver()
        self.server.status = 204
        root = User.objects.create_superuser("root")
        self.client.force_login(root)
        page = "/admin/accounts/webhookendpoint/"
        for path in (page, f"{page}{made['id']}/change/"):
            shown = self.client.get(path)
            self.assertContains(shown, "127.0.0.1")
            self.assertNotContains(shown, "token-in-the-path")
        self.assertContains(shown, "The server responded with 500.")
        chosen = {"_selected_action": made["id"]}
        self.client.post(page, {"action": "send_again", **chosen})
        self.assertEqual(len(self.deliver()), 1)
        self.client.post(page, {"action": "switch_off", **chosen})
        self.assertFalse(WebhookEndpoint.objects.get().active)
        self.assertEqual(AuditEntry.objects.filter(action="webhook_changed", actor="root").count(), 1)
