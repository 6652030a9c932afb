"""Many requests of one address at once: they wait for each other, but other addresses do not."""

import asyncio
import socket
import threading
import time
from contextlib import ExitStack

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client, override_settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from chatsite.accounts.api.authentication import caller
from chatsite.accounts.known_callers import credential
from chatsite.accounts.models import ApiKey
from chatsite.accounts.passwords import hashing
from chatsite.db.bulkheads import Bulkheads
from chatsite.http import address_limit
from chatsite.http.address_limit import GONE_KEY, WAITED_KEY, AddressLimit
from chatsite.tests.leftovers import temporary_folder
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import Site, prepared
from ingestion.tests.factories import make_user

PROMPT_SECONDS = 1.0
MARGIN_SECONDS = 2.0  # for a busy machine
CROWD = 1_000


class HeldApplication:
    """An application that records its requests, and responds when it is released."""

    def __init__(self):
        self.begun, self.waited = [], []
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope, receive, send):
        self.begun.append(scope["client"][0])
        self.waited.append(scope.get(WAITED_KEY, 0.0))
        self.entered.set()
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def request(application, client="192.0.2.1", path="/", forwarded="", kind="http", key="", gone=None):
    """A task that ends with the status of the response; None if there is none."""
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    headers += [(b"x-api-key", key.encode())] if key else []
    scope = {"type": kind, "client": (client, 1), "path": path, "headers": headers, "scheme": "http"}
    scope |= {GONE_KEY: gone} if gone else {}
    statuses = [None]

    async def send(message):
        if message["type"].endswith("http.response.start"):
            assert message["type"].startswith(kind)
            statuses.append(message["status"])

    async def ask():
        await application(scope, None, send)
        return statuses[-1]

    return asyncio.create_task(ask())


def with_session(key):
    """The scope of a request with the cookie of a session."""
    return {"headers": [(b"cookie", f"{settings.SESSION_COOKIE_NAME}={key}".encode())]}


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def two_slots():
    with override_settings(ADDRESS_CONCURRENT_REQUESTS=2):
        yield


@pytest.mark.usefixtures("two_slots")
class TestSlots:
    def test_two_requests_of_an_address_start_and_the_others_wait(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside)
            asked = [request(limited) for _ in range(5)]
            await settle()
            assert len(inside.begun) == 2
            inside.go_on.set()
            assert await asyncio.gather(*asked) == [200] * 5
            assert limited._addresses.by_key == {}

        asyncio.run(scenario())

    def test_another_address_and_a_health_check_do_not_wait(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside)
            asked = [request(limited) for _ in range(5)]
            asked += [request(limited, "192.0.2.2"), request(limited, path="/healthz")]
            await settle()
            assert inside.begun == ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1"]
            inside.go_on.set()
            await asyncio.gather(*asked)

        asyncio.run(scenario())

    def test_only_a_trusted_proxy_gives_each_caller_separate_slots(self):
        async def scenario(proxy):
            inside = HeldApplication()
            limited = ProxyHeadersMiddleware(AddressLimit(inside), trusted_hosts=["10.0.0.1"])
            asked = [request(limited, proxy, forwarded=f"198.51.100.{n}") for n in range(5)]
            await settle()
            begun = len(inside.begun)
            inside.go_on.set()
            await asyncio.gather(*asked)
            return begun

        assert asyncio.run(scenario("10.0.0.1")) == 5
        assert asyncio.run(scenario("10.0.0.2")) == 2

    def test_addresses_of_one_ipv6_network_share_their_slots(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside)
            asked = [request(limited, f"2001:db8:1:2::{n}") for n in range(1, 5)]
            asked += [request(limited, "2001:db8:1:3::1"), request(limited, "::ffff:192.0.2.9")]
            await settle()
            assert len(inside.begun) == 4
            inside.go_on.set()
            await asyncio.gather(*asked)

        asyncio.run(scenario())

    def test_a_long_request_releases_its_slot(self, monkeypatch):
        monkeypatch.setattr(address_limit, "SLOT_SECONDS", 0.05)

        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside)
            asked = [request(limited) for _ in range(6)]
            await asyncio.sleep(0.5)  # ten times as long as a slot is held
            assert len(inside.begun) == 6
            inside.go_on.set()
            assert await asyncio.gather(*asked) == [200] * 6
            assert limited._addresses.by_key == {}

        asyncio.run(scenario())

    def test_an_overlong_wait_is_refused_and_a_leaving_caller_frees_its_place(self, monkeypatch):
        monkeypatch.setattr(address_limit, "WAIT_SECONDS", 0.1)

        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside)
            begun = [request(limited) for _ in range(2)]
            await settle()
            late, gone = request(limited), request(limited)
            await settle()
            gone.cancel()
            assert await late == 503
            inside.go_on.set()
            assert await asyncio.gather(*begun, request(limited)) == [200] * 3
            assert limited._addresses.by_key == {}

        asyncio.run(scenario())

    def test_sockets_wait_for_a_slot_until_they_are_accepted(self, monkeypatch):
        monkeypatch.setattr(address_limit, "WAIT_SECONDS", 0.1)

        async def scenario():
            accepted = asyncio.Event()

            async def page(scope, receive, send):
                await accepted.wait()
                await send({"type": "websocket.accept"})
                await asyncio.Event().wait()

            limited = AddressLimit(page)
            opened = [request(limited, kind="websocket") for _ in range(2)]
            assert await request(limited, kind="websocket") == 503
            accepted.set()
            await settle()
            assert limited._addresses.by_key == {}
            for each in opened:
                each.cancel()

        asyncio.run(scenario())

    def test_a_request_waiting_for_password_hashing_releases_its_slot(self, monkeypatch):
        monkeypatch.setattr(address_limit, "SLOT_SECONDS", HANG_SECONDS)
        hashed, go_on = [], threading.Event()

        def sign_in():
            hashing.in_turn(go_on.wait, HANG_SECONDS)
            hashed.append(threading.current_thread())

        async def signs_in(scope, receive, send):
            await asyncio.to_thread(sign_in)
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def scenario():
            inside = HeldApplication()

            async def application(scope, receive, send):
                await (signs_in if scope["path"] == "/sign-in/" else inside)(scope, receive, send)

            limited = AddressLimit(application)
            asked = [request(limited, path="/sign-in/") for _ in range(4)]
            page = request(limited)
            await inside.entered.wait()
            assert hashed == []
            go_on.set()
            inside.go_on.set()
            assert await asyncio.gather(page, *asked) == [200] * 5

        asyncio.run(asyncio.wait_for(scenario(), HANG_SECONDS))

    def test_the_wait_for_a_slot_is_recorded_with_the_request(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside)
            asked = [request(limited) for _ in range(3)]
            await settle()  # the third one waits from here at the latest
            waiting = time.monotonic()
            await asyncio.sleep(0.1)
            waited = time.monotonic() - waiting
            inside.go_on.set()
            await asyncio.gather(*asked)
            assert max(inside.waited[:2]) < waited <= inside.waited[2]

        asyncio.run(scenario())

    def test_zero_is_no_limit(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside)
            asked = [request(limited) for _ in range(50)]
            await settle()
            assert len(inside.begun) == 50
            inside.go_on.set()
            await asyncio.gather(*asked)

        with override_settings(ADDRESS_CONCURRENT_REQUESTS=0):
            asyncio.run(scenario())


@pytest.fixture
def four_of_a_caller():
    with override_settings(ADDRESS_CONCURRENT_REQUESTS=8, CALLER_CONCURRENT_REQUESTS=4):
        yield


@pytest.mark.usefixtures("four_of_a_caller")
class TestCallers:
    def test_a_caller_has_four_slots_and_only_two_while_others_are_active(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            alone = [request(limited, key="flooding") for _ in range(10)]
            await settle()
            assert len(inside.begun) == 4
            other = request(limited, key="innocent")
            await settle()
            assert len(inside.begun) == 5
            assert limited._callers._slots(("flooding", False), 4) == 2
            inside.go_on.set()
            assert await asyncio.gather(*alone, other) == [200] * 11
            assert limited._callers.by_key == limited._addresses.by_key == {}

        asyncio.run(scenario())

    @pytest.mark.django_db
    def test_all_keys_of_a_person_share_the_slots_of_one_caller(self):
        person = make_user("asker")
        made = [ApiKey.objects.issue(person, "a key") for _ in range(6)]
        keys = [secret for _, secret in made]
        assert all(caller(secret) for secret in keys)
        other = ApiKey.objects.issue(make_user("other"), "a key")[1]
        assert caller(other)

        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            flood = [request(limited, key=keys[number % 6]) for number in range(12)]
            await settle()
            assert len(inside.begun) == 4
            others = [request(limited, key=other), request(limited, key=f"\n{person.pk}")]
            await settle()
            assert len(inside.begun) == 6
            inside.go_on.set()
            assert set(await asyncio.gather(*flood, *others)) == {200}

        asyncio.run(scenario())
        ApiKey.objects.filter(pk=made[0][0].pk).revoke()
        assert caller(keys[0]) is None
        scope = {"headers": [(b"x-api-key", keys[0].encode())]}
        assert credential(scope) == keys[0], "a former key no longer takes slots of its holder"

    @pytest.mark.django_db
    def test_all_sessions_and_keys_of_a_person_share_the_slots_of_one_caller(self):
        person = make_user("asker")
        secret = ApiKey.objects.issue(person, "a key")[1]
        assert caller(secret)
        browsers = [Client() for _ in range(6)]
        for browser in browsers:
            browser.force_login(person)
            assert browser.get("/settings/").status_code == 200
        keys = [browser.cookies[settings.SESSION_COOKIE_NAME].value for browser in browsers]
        scopes = [with_session(key) for key in keys]
        presented = {credential(scope) for scope in scopes}
        assert presented == {credential({"headers": [(b"x-api-key", secret.encode())]})}

        # A session key that is sent as an API key does not separate the session from its person.
        assert caller(keys[0]) is None
        assert {credential(scopes[0])} == presented
        SessionStore(keys[0]).delete()
        assert browsers[0].get("/settings/").status_code == 302
        assert credential(scopes[0]) == keys[0], "a former session no longer takes slots of its person"

    @pytest.mark.parametrize("is_locked", [True, False])
    def test_a_waiting_request_is_refused_in_time_only_while_a_lock_delays_the_database(
        self, is_locked, monkeypatch
    ):
        monkeypatch.setattr(address_limit, "DECISION_SECONDS", 0.01)
        monkeypatch.setattr(address_limit, "POLL_SECONDS", 0.01)
        places = Bulkheads()
        monkeypatch.setattr(address_limit, "bulkheads", places)

        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            asked = [request(limited, key="somebody") for _ in range(12)]
            await settle()
            assert places.enter("page", 0)
            places.leave("page", stuck=is_locked)
            ended, waiting = await asyncio.wait(asked, timeout=0.5)  # five times the budget
            inside.go_on.set()
            return [each.result() for each in ended], await asyncio.gather(*waiting)

        with override_settings(DATABASE_SECONDS=0.1):
            refused, answered = asyncio.run(scenario())
        assert (refused, answered) == (([503] * 8, [200] * 4) if is_locked else ([], [200] * 12))

    def test_a_caller_regains_all_slots_when_others_are_gone(self, monkeypatch):
        monkeypatch.setattr(address_limit, "RECENT_SECONDS", 0.05)

        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            other = request(limited, key="innocent")
            flood = [request(limited, key="flooding") for _ in range(6)]
            await settle()
            assert len(inside.begun) == 3
            await asyncio.sleep(0.1)
            inside.go_on.set()
            assert await asyncio.gather(other, *flood) == [200] * 7

        asyncio.run(scenario())

    def test_a_crowd_of_one_caller_takes_no_slot_of_its_address_while_it_waits(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            flood = [request(limited, key="flooding") for _ in range(50)]
            await settle()
            others = [request(limited, key=f"innocent {number}") for number in range(4)]
            await settle()
            assert len(inside.begun) == 8
            inside.go_on.set()
            assert set(await asyncio.gather(*flood, *others)) == {200}

        asyncio.run(scenario())

    def test_static_files_and_health_checks_need_no_slot_of_their_caller(self):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            asked = [request(limited, key="flooding") for _ in range(6)]
            asked += [
                request(limited, key="flooding", path=path) for path in ("/static/portal.css", "/healthz")
            ]
            await settle()
            assert len(inside.begun) == 6
            inside.go_on.set()
            await asyncio.gather(*asked)

        asyncio.run(scenario())

    def test_a_request_beyond_the_longest_queue_is_refused_at_once(self, monkeypatch):
        monkeypatch.setattr(address_limit, "MAX_WAITING_OF_CALLER", 3)

        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            asked = [request(limited, key="flooding") for _ in range(7)]
            await settle()
            assert await request(limited, key="flooding") == 429
            inside.go_on.set()
            assert await asyncio.gather(*asked) == [200] * 7

        asyncio.run(scenario())

    @pytest.mark.parametrize("key", ["flooding", ""])
    def test_a_disconnected_caller_leaves_the_queue_at_once(self, key):
        async def scenario():
            inside = HeldApplication()
            limited = AddressLimit(inside, credential)
            begun = [request(limited, key=key) for _ in range(8)]
            await settle()
            ran = len(inside.begun)
            gone = asyncio.get_running_loop().create_future()
            left = request(limited, key=key, gone=gone)
            await settle()
            gone.set_result(None)
            assert await left is None
            inside.go_on.set()
            await asyncio.gather(*begun)
            assert (ran, len(inside.begun)) == (4 if key else 8, 8)
            assert limited._callers.by_key == limited._addresses.by_key == {}

        asyncio.run(scenario())


@pytest.fixture(scope="module")
def site():
    with Site(prepared(temporary_folder(), demo=False), demo=False, workers=0) as running:
        yield running


def slow_reader(site, stack, requests):
    """A connection from a second address, which sends requests and does not read the responses."""
    sock = stack.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
    sock.bind(("127.0.0.2", 0))
    sock.settimeout(20)
    session = site.session()
    sock.connect((session.host, session.port))
    sock.sendall(requests)
    return sock


@pytest.mark.server
@pytest.mark.parametrize("path", ["/accounts/sign-in/", "/static/portal.css"])
def test_a_thousand_slow_readers_do_not_delay_other_callers(site, path):
    session = site.session()
    page = f"GET {path} HTTP/1.1\r\nHost: {session.host}:{session.port}\r\n\r\n".encode()
    waited = []

    def look():
        for asked in ("/healthz", "/accounts/sign-in/"):
            begun = time.monotonic()
            assert site.session().get(asked).status == 200
            waited.append(time.monotonic() - begun)

    with ExitStack() as stack:
        for number in range(CROWD):
            slow_reader(site, stack, page * 3)
            if number % 100 == 99:
                look()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            look()
    assert max(waited) < PROMPT_SECONDS + MARGIN_SECONDS


@pytest.mark.server
def test_five_thousand_requests_sent_at_once_on_one_connection_are_answered_one_by_one(site):
    [web] = site.children("chatsite.server.serving.web_process")
    before = web.memory_info().rss
    with site.session().socket() as sock:
        sock.settimeout(60)
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 5_000)
        begun = time.monotonic()
        assert site.session().get("/healthz").status == 200
        assert time.monotonic() - begun < PROMPT_SECONDS + MARGIN_SECONDS
        found, tail = 0, b""
        while found < 5_000:
            data = tail + sock.recv(65_536)
            found += data.count(b'{"status": "ok"}')
            tail = data[-15:] if not data.endswith(b'{"status": "ok"}') else b""
    assert web.memory_info().rss - before < 20_000_000
