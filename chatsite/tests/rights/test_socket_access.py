"""Who may open each WebSocket. An address without a row here fails the build.

Outcomes: `yes` is a connection. `absent` is a refusal that equals that for an id that does not exist.
"""

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.test import Client, TransactionTestCase

from chatsite.asgi import application
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.routes import socket_address, socket_routes
from chatsite.tests.world import NOWHERE, ROLES, World, rows_of

# Messages on a connection are tested with the consumer.
SOCKETS = """
pattern                        anonymous stranger member   owner    staff    disabled
ws/c/<uuid:conversation_id>/   absent    absent   absent   yes      absent   absent
"""


class Sockets(TransactionTestCase):
    def setUp(self):
        self.world = World()
        self.clients = {role: Client() for role in ROLES}
        for role, person in self.world.people.items():
            self.clients[role].force_login(person)
        self.world.disable()

    def test_every_address_has_a_row(self):
        self.assertEqual(set(socket_routes()), {row["pattern"] for row in rows_of(SOCKETS)})

    async def test_every_row(self):
        arguments = await sync_to_async(lambda: self.world.arguments)()
        nothing = arguments | {"conversation_id": NOWHERE}
        for row in rows_of(SOCKETS):
            for role in ROLES:
                with self.subTest(f"{row['pattern']} as {role}"):
                    answer = await self.knock(socket_address(row["pattern"], arguments), role)
                    if row[role] == "yes":
                        self.assertEqual(answer["type"], "websocket.accept")
                    else:
                        self.assertEqual(answer["type"], "websocket.close")
                        unknown = await self.knock(socket_address(row["pattern"], nothing), role)
                        self.assertEqual(answer, unknown)

    async def test_an_address_without_a_socket_is_refused_like_a_conversation_that_does_not_exist(self):
        for role in ROLES:
            for path in ("/", "/ws/", "/ws/c/1/", "/chat"):
                unknown = await self.knock(f"/ws/c/{NOWHERE}/", role)
                self.assertEqual(await self.knock(path, role), unknown)

    async def test_a_page_of_another_origin_opens_no_socket(self):
        arguments = await sync_to_async(lambda: self.world.arguments)()
        path = socket_address(next(iter(socket_routes())), arguments)
        for origin in (
            "http://evil.test",
            "http://localhost:9000",
            "null",
            "",
            "http://[",
            "file://localhost",
        ):
            with self.subTest(origin):
                answer = await self.knock(path, "owner", origin)
                self.assertEqual(answer["type"], "websocket.close")
        with self.settings(CSRF_TRUSTED_ORIGINS=["https://localhost", "http://*.localhost:9000"]):
            for origin in ("https://localhost", "http://localhost"):
                self.assertEqual((await self.knock(path, "owner", origin))["type"], "websocket.accept")

    async def knock(self, path, role, origin="http://localhost"):
        """The first message of a socket."""
        cookies = self.clients[role].cookies.output(header="", sep=";").strip()
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "subprotocols": [],
            "headers": [
                (b"origin", origin.encode()),
                (b"host", b"localhost"),
                (b"cookie", cookies.encode()),
            ],
        }
        socket = ApplicationCommunicator(application, scope)
        await socket.send_input({"type": "websocket.connect"})
        answer = await socket.receive_output(timeout=HANG_SECONDS)
        await socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await socket.wait(timeout=HANG_SECONDS)
        return answer
