"""Who gets what at every URL. A route without a row here fails the build.

Outcomes: `yes` is anything but a refusal. `sign-in` is a redirect to the sign-in page. `401` is for callers
without a valid session or key. `absent` is a 404 whose body equals that for an id that does not exist. `403`
is for those who may know of the thing, but not change it.
"""

import logging
import re
import shutil
import tempfile

import pytest
from asgiref.sync import AsyncSingleThreadContext
from django.conf import settings
from django.test import Client, SimpleTestCase, TransactionTestCase, override_settings

from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.routes import address, admin_addresses, routes
from chatsite.tests.world import ROLES, World, rows_of

# auth: session (the portal's cookie) or key (Authorization: Bearer; anonymous sends an invalid one)
TABLE = """
route                    method auth     anonymous stranger member   owner    staff    disabled

healthz                  GET    session  yes       yes      yes      yes      yes      yes
readyz                   GET    session  yes       yes      yes      yes      yes      yes
metrics                  GET    session  absent    absent   absent   absent   absent   absent
metrics                  GET    key      absent    absent   absent   absent   absent   absent

schema                   GET    session  yes       yes      yes      yes      yes      yes
schema                   GET    key      yes       yes      yes      yes      yes      yes
api-docs                 GET    session  yes       yes      yes      yes      yes      yes

accounts:sign-in         GET    session  yes       yes      yes      yes      yes      yes
accounts:provider        GET    session  absent    absent   absent   absent   absent   absent
accounts:provider-callback GET  session  absent    absent   absent   absent   absent   absent
accounts:sign-out        POST   session  sign-in   sign-in  sign-in  sign-in  sign-in  sign-in
accounts:settings        GET    session  sign-in   yes      yes      yes      yes      sign-in
accounts:settings        POST   session  sign-in   yes      yes      yes      yes      sign-in
accounts:password        GET    session  sign-in   yes      yes      yes      yes      sign-in
accounts:password        POST   session  sign-in   yes      yes      yes      yes      sign-in
accounts:keys            GET    session  sign-in   yes      yes      yes      yes      sign-in
accounts:keys            POST   session  sign-in   yes      yes      yes      yes      sign-in
accounts:revoke-key      GET    session  sign-in   absent   absent   yes      absent   sign-in
accounts:revoke-key      POST   session  sign-in   absent   absent   yes      absent   sign-in
accounts:sessions        GET    session  sign-in   yes      yes      yes      yes      sign-in
accounts:sessions        POST   session  sign-in   yes      yes      yes      yes      sign-in
chat:own-data            GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:own-data            POST   session  sign-in   yes      yes      yes      yes      sign-in
chat:hints-seen          POST   session  sign-in   yes      yes      yes      yes      sign-in
accounts:directory       GET    session  sign-in   yes      yes      yes      yes      sign-in
accounts:help            GET    session  sign-in   yes      yes      yes      yes      sign-in
accounts:whoami          GET    session  401       yes      yes      yes      yes      401
accounts:whoami          GET    key      401       yes      yes      yes      yes      401
accounts:webhooks            GET    session  401      yes      yes      yes      yes      401
accounts:webhooks            GET    key      401      yes      yes      yes      yes      401
accounts:webhooks            POST   session  401      yes      yes      yes      yes      401
accounts:webhooks            POST   key      401      yes      yes      yes      yes      401
accounts:webhook             GET    session  401      absent   absent   yes      absent   401
accounts:webhook             GET    key      401      absent   absent   yes      absent   401
accounts:webhook             PATCH  session  401      absent   absent   yes      absent   401
accounts:webhook             PATCH  key      401      absent   absent   yes      absent   401
accounts:webhook             DELETE session  401      absent   absent   yes      absent   401
accounts:webhook             DELETE key      401      absent   absent   yes      absent   401
accounts:webhook-secret      POST   session  401      absent   absent   yes      absent   401
accounts:webhook-secret      POST   key      401      absent   absent   yes      absent   401
accounts:webhook-test        POST   session  401      absent   absent   yes      absent   401
accounts:webhook-test        POST   key      401      absent   absent   yes      absent   401
accounts:webhook-deliveries  GET    session  401      absent   absent   yes      absent   401
accounts:webhook-deliveries  GET    key      401      absent   absent   yes      absent   401
accounts:webhook-replay      POST   session  401      absent   absent   yes      absent   401
accounts:webhook-replay      POST   key      401      absent   absent   yes      absent   401

ingestion:documents      GET    session  sign-in   yes      yes      yes      yes      sign-in
ingestion:add            GET    session  sign-in   yes      yes      yes      yes      sign-in
ingestion:several        POST   session  sign-in   yes      yes      yes      yes      sign-in
ingestion:add            POST   session  sign-in   yes      yes      yes      yes      sign-in
ingestion:status         GET    session  sign-in   yes      yes      yes      yes      sign-in
ingestion:document       GET    session  sign-in   absent   yes      yes      absent   sign-in
ingestion:changes        GET    session  sign-in   absent   yes      yes      absent   sign-in
ingestion:rights         POST   session  sign-in   absent   403      yes      absent   sign-in
ingestion:details        POST   session  sign-in   absent   403      yes      absent   sign-in
ingestion:again          POST   session  sign-in   absent   403      yes      absent   sign-in
ingestion:delete         GET    session  sign-in   absent   403      yes      absent   sign-in
ingestion:delete         POST   session  sign-in   absent   403      yes      absent   sign-in
ingestion:api-documents  GET    session  401       yes      yes      yes      yes      401
ingestion:api-documents  GET    key      401       yes      yes      yes      yes      401
ingestion:api-document   GET    session  401       absent   yes      yes      absent   401
ingestion:api-document   GET    key      401       absent   yes      yes      absent   401
ingestion:api-document   PUT    session  401       yes      yes      yes      yes      401
ingestion:api-document   PUT    key      401       yes      yes      yes      yes      401
ingestion:api-document   PATCH  session  401       absent   403      yes      absent   401
ingestion:api-document   PATCH  key      401       absent   403      yes      absent   401
ingestion:api-document   DELETE session  401       absent   403      yes      absent   401
ingestion:api-document   DELETE key      401       absent   403      yes      absent   401
ingestion:api-slashed    GET    session  401       absent   absent   absent   absent   401
ingestion:api-slashed    GET    key      401       absent   absent   absent   absent   401
ingestion:api-passages   GET    session  401       absent   yes      yes      absent   401
ingestion:api-passages   GET    key      401       absent   yes      yes      absent   401
ingestion:api-page       GET    session  401       absent   yes      yes      absent   401
ingestion:api-page       GET    key      401       absent   yes      yes      absent   401
ingestion:api-versions   GET    session  401       absent   yes      yes      absent   401
ingestion:api-versions   GET    key      401       absent   yes      yes      absent   401
ingestion:api-file       GET    session  401       absent   yes      yes      absent   401
ingestion:api-file       GET    key      401       absent   yes      yes      absent   401
ingestion:api-batch      POST   session  401       yes      yes      yes      yes      401
ingestion:api-batch      POST   key      401       yes      yes      yes      yes      401
ingestion:search         POST   session  401       yes      yes      yes      yes      401
ingestion:search         POST   key      401       yes      yes      yes      yes      401
ingestion:content        GET    session  401       absent   yes      yes      absent   401
ingestion:content        GET    key      401       absent   yes      yes      absent   401
ingestion:page-image     GET    session  401       absent   yes      yes      absent   401
ingestion:page-image     GET    key      401       absent   yes      yes      absent   401

chat:new                 GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:new                 POST   session  sign-in   yes      yes      yes      yes      sign-in
chat:search              GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:conversation        GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:conversation-without-slash GET session sign-in absent  absent   yes      absent   sign-in
chat:source              GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:ask                 GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:ask                 POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:stop                POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:edit                GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:edit                POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:compare             GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:compare-source      GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:choose              GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:choose              POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:again               GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:again               POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:continue            GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:continue            POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:feedback            GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:feedback            POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:rename              POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:pin                 POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:archive             POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:palette             GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:dots                GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:manage              GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:seen                POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:search-in           GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:search-in           POST   session  sign-in   yes      yes      yes      yes      sign-in
chat:search-in-conversation GET session  sign-in   absent   absent   yes      absent   sign-in
chat:attach              POST   session  sign-in   yes      yes      yes      yes      sign-in
chat:attach-to-conversation POST session sign-in   absent   absent   yes      absent   sign-in
chat:attach-to-project   POST   session  sign-in   absent   yes      yes      absent   sign-in
chat:search-in-conversation POST session sign-in   absent   absent   yes      absent   sign-in
chat:several             POST   session  sign-in   yes      yes      yes      yes      sign-in
chat:delete              POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:undo                POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:export              GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:export-page         GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:move                GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:move                POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:projects            GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:new-project         GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:new-project         POST   session  sign-in   yes      yes      yes      yes      sign-in
chat:project             GET    session  sign-in   absent   yes      yes      absent   sign-in
chat:ask-in-project      GET    session  sign-in   absent   yes      yes      absent   sign-in
chat:ask-in-project      POST   session  sign-in   absent   yes      yes      absent   sign-in
chat:search-in-project   GET    session  sign-in   absent   yes      yes      absent   sign-in
chat:search-in-project   POST   session  sign-in   absent   yes      yes      absent   sign-in
chat:project-scope       GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:project-scope       POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:edit-project        GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:edit-project        POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:project-members     GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:project-members     POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:leave-project       GET    session  sign-in   absent   absent   absent   absent   sign-in
chat:leave-project       POST   session  sign-in   absent   absent   absent   absent   sign-in
chat:delete-project      GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:delete-project      POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:share               GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:share               POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:shared-with-me      GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:shares              GET    session  sign-in   yes      yes      yes      yes      sign-in
chat:revoke-share        GET    session  sign-in   absent   absent   yes      absent   sign-in
chat:revoke-share        POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:renew-share         POST   session  sign-in   absent   absent   yes      absent   sign-in
chat:shared              GET    session  sign-in   absent   yes      yes      absent   sign-in
chat:shared-source       GET    session  sign-in   absent   yes      yes      absent   sign-in
chat:shared-export       GET    session  sign-in   absent   yes      yes      absent   sign-in
chat:shared-export-page  GET    session  sign-in   absent   yes      yes      absent   sign-in
chat:shared-go-on        POST   session  sign-in   absent   yes      yes      absent   sign-in

chat-api:chat            POST   session  401       yes      yes      yes      yes      401
chat-api:chat            POST   key      401       yes      yes      yes      yes      401
chat-api:chat-stream     POST   session  401       yes      yes      yes      yes      401
chat-api:chat-stream     POST   key      401       yes      yes      yes      yes      401
chat-api:run-events      GET    session  401       absent   absent   yes      absent   401
chat-api:run-events      GET    key      401       absent   absent   yes      absent   401
chat-api:stop-run        POST   session  401       absent   absent   yes      absent   401
chat-api:stop-run        POST   key      401       absent   absent   yes      absent   401
chat-api:ask             POST   session  401       yes      yes      yes      yes      401
chat-api:ask             POST   key      401       yes      yes      yes      yes      401
chat-api:ask-stream      POST   session  401       yes      yes      yes      yes      401
chat-api:ask-stream      POST   key      401       yes      yes      yes      yes      401
chat-api:chat-2026       POST   session  401       yes      yes      yes      yes      401
chat-api:chat-2026       POST   key      401       yes      yes      yes      yes      401
chat-api:chat-2026-stream POST  session  401       yes      yes      yes      yes      401
chat-api:chat-2026-stream POST  key      401       yes      yes      yes      yes      401
chat-api:ask-2026        POST   session  401       yes      yes      yes      yes      401
chat-api:ask-2026        POST   key      401       yes      yes      yes      yes      401
chat-api:ask-2026-stream POST   session  401       yes      yes      yes      yes      401
chat-api:ask-2026-stream POST   key      401       yes      yes      yes      yes      401
chat:privacy             GET    session  yes       yes      yes      yes      yes      yes
chat:logo                GET    session  absent    absent   absent   absent   absent   absent
chat:banner              GET    session  yes       yes      yes      yes      yes      yes
chat:auth-setup          GET    session  yes       yes      yes      yes      yes      yes
chat:config              GET    session  yes       yes      yes      yes      yes      yes
chat-api:completions     POST   session  401       yes      yes      yes      yes      401
chat-api:completions     POST   key      401       yes      yes      yes      yes      401
chat-api:chat-ui         POST   session  401       yes      yes      yes      yes      401
chat-api:chat-ui         POST   key      401       yes      yes      yes      yes      401
chat-api:chat-ui-stream  POST   session  401       yes      yes      yes      yes      401
chat-api:chat-ui-stream  POST   key      401       yes      yes      yes      yes      401
chat-api:chat-ui-batch   POST   session  401       yes      yes      yes      yes      401
chat-api:chat-ui-batch   POST   key      401       yes      yes      yes      yes      401
chat-api:minimal         POST   session  401       yes      yes      yes      yes      401
chat-api:minimal         POST   key      401       yes      yes      yes      yes      401
chat-api:minimal-stream  POST   session  401       yes      yes      yes      yes      401
chat-api:minimal-stream  POST   key      401       yes      yes      yes      yes      401
chat-api:minimal-batch   POST   session  401       yes      yes      yes      yes      401
chat-api:minimal-batch   POST   key      401       yes      yes      yes      yes      401
chat-api:chat-ui-team         POST   session  401       yes      yes      yes      yes      401
chat-api:chat-ui-team         POST   key      401       yes      yes      yes      yes      401
chat-api:chat-ui-team-stream  POST   session  401       yes      yes      yes      yes      401
chat-api:chat-ui-team-stream  POST   key      401       yes      yes      yes      yes      401
chat-api:chat-ui-team-batch   POST   session  401       yes      yes      yes      yes      401
chat-api:chat-ui-team-batch   POST   key      401       yes      yes      yes      yes      401
chat-api:minimal-team         POST   session  401       yes      yes      yes      yes      401
chat-api:minimal-team         POST   key      401       yes      yes      yes      yes      401
chat-api:minimal-team-stream  POST   session  401       yes      yes      yes      yes      401
chat-api:minimal-team-stream  POST   key      401       yes      yes      yes      yes      401
chat-api:minimal-team-batch   POST   session  401       yes      yes      yes      yes      401
chat-api:minimal-team-batch   POST   key      401       yes      yes      yes      yes      401
chat-api:messages             POST   session  401       yes      yes      yes      yes      401
chat-api:messages             POST   key      401       yes      yes      yes      yes      401
chat-api:messages-team        POST   session  401       yes      yes      yes      yes      401
chat-api:messages-team        POST   key      401       yes      yes      yes      yes      401
chat-api:models          GET    key      401       yes      yes      yes      yes      401
chat-api:model           GET    session  401       yes      yes      yes      yes      401
chat-api:model           GET    key      401       yes      yes      yes      yes      401
chat-api:embeddings      POST   session  401       yes      yes      yes      yes      401
chat-api:embeddings      POST   key      401       yes      yes      yes      yes      401
chat-api:responses       POST   session  401       yes      yes      yes      yes      401
chat-api:responses       POST   key      401       yes      yes      yes      yes      401
chat-api:response        GET    session  401       absent   absent   yes      absent   401
chat-api:response        GET    key      401       absent   absent   yes      absent   401
chat-api:response        DELETE session  401       absent   absent   yes      absent   401
chat-api:response        DELETE key      401       absent   absent   yes      absent   401
chat-api:cancel-response POST   session  401       absent   absent   yes      absent   401
chat-api:cancel-response POST   key      401       absent   absent   yes      absent   401
chat-api:legacy-completions POST session 401       yes      yes      yes      yes      401
chat-api:legacy-completions POST key     401       yes      yes      yes      yes      401

mcp:server               POST   session  401       yes      yes      yes      yes      401
mcp:server               POST   key      401       yes      yes      yes      yes      401
mcp:resource-metadata    GET    session  absent    absent   absent   absent   absent   absent
mcp:resource-metadata    GET    key      absent    absent   absent   absent   absent   absent

history:conversations    GET    session  401      yes      yes      yes      yes      401
history:conversations    GET    key      401      yes      yes      yes      yes      401
history:conversations    POST   session  401      yes      yes      yes      yes      401
history:conversations    POST   key      401      yes      yes      yes      yes      401
history:search           GET    session  401      yes      yes      yes      yes      401
history:search           GET    key      401      yes      yes      yes      yes      401
history:conversation     GET    session  401      absent   absent   yes      absent   401
history:conversation     GET    key      401      absent   absent   yes      absent   401
history:conversation     PUT    session  401      absent   absent   yes      absent   401
history:conversation     PUT    key      401      absent   absent   yes      absent   401
history:conversation     PATCH  session  401      absent   absent   yes      absent   401
history:conversation     PATCH  key      401      absent   absent   yes      absent   401
history:conversation     DELETE session  401      absent   absent   yes      absent   401
history:conversation     DELETE key      401      absent   absent   yes      absent   401
history:messages         GET    session  401      absent   absent   yes      absent   401
history:messages         GET    key      401      absent   absent   yes      absent   401
history:messages         PUT    session  401      absent   absent   yes      absent   401
history:messages         PUT    key      401      absent   absent   yes      absent   401
history:restore          POST   session  401      absent   absent   yes      absent   401
history:restore          POST   key      401      absent   absent   yes      absent   401
history:export           GET    session  401      absent   absent   yes      absent   401
history:export           GET    key      401      absent   absent   yes      absent   401
history:feedback         GET    session  401      absent   absent   yes      absent   401
history:feedback         GET    key      401      absent   absent   yes      absent   401
history:feedback         PUT    session  401      absent   absent   yes      absent   401
history:feedback         PUT    key      401      absent   absent   yes      absent   401
history:feedback         DELETE session  401      absent   absent   yes      absent   401
history:feedback         DELETE key      401      absent   absent   yes      absent   401
chat-api:projects        GET    session  401      yes      yes      yes      yes      401
chat-api:projects        GET    key      401      yes      yes      yes      yes      401
chat-api:projects        POST   session  401      yes      yes      yes      yes      401
chat-api:projects        POST   key      401      yes      yes      yes      yes      401
chat-api:project         GET    session  401      absent   yes      yes      absent   401
chat-api:project         GET    key      401      absent   yes      yes      absent   401
chat-api:project         PATCH  session  401      absent   absent   yes      absent   401
chat-api:project         PATCH  key      401      absent   absent   yes      absent   401
chat-api:project         DELETE session  401      absent   absent   yes      absent   401
chat-api:project         DELETE key      401      absent   absent   yes      absent   401
chat-api:project-members GET    session  401      absent   absent   yes      absent   401
chat-api:project-members GET    key      401      absent   absent   yes      absent   401
chat-api:project-members PUT    session  401      absent   absent   yes      absent   401
chat-api:project-members PUT    key      401      absent   absent   yes      absent   401
chat-api:project-members DELETE session  401      absent   absent   absent   absent   401
chat-api:project-members DELETE key      401      absent   absent   absent   absent   401
history:shares           GET    session  401      yes      yes      yes      yes      401
history:shares           GET    key      401      yes      yes      yes      yes      401
history:shares           POST   session  401      yes      yes      yes      yes      401
history:shares           POST   key      401      yes      yes      yes      yes      401
history:share            DELETE session  401      absent   absent   yes      absent   401
history:share            DELETE key      401      absent   absent   yes      absent   401

admin:ingestion_document_access     GET  session  sign-in  sign-in  sign-in  sign-in  yes      sign-in
admin:ingestion_document_access     POST session  sign-in  sign-in  sign-in  sign-in  yes      sign-in
admin:history_share_changelist      GET  session  sign-in  sign-in  sign-in  sign-in  yes      sign-in
admin:accounts_user_export           GET  session  sign-in  sign-in  sign-in  sign-in  yes      sign-in
admin:accounts_user_export           POST session  sign-in  sign-in  sign-in  sign-in  yes      sign-in
admin:accounts_auditentry_changelist GET session  sign-in  sign-in  sign-in  sign-in  yes      sign-in
"""

# Preparations that a row needs.
BEFORE = {
    "chat:undo": World.delete_conversation,
    "history:restore": World.delete_conversation,
    "history:feedback": World.give_feedback,
    "chat:shared-source": World.finish_answer,
    "chat:compare": World.answer_again,
    "chat:compare-source": World.answer_again,
}
ADMIN_OPEN_TO_ALL = {"admin:login", "admin:logout"}
CHANGING = re.compile(r'(name="csrfmiddlewaretoken" value=")[^"]+|[0-9a-f]{32}|[0-9a-f-]{36}')


class EveryRouteHasARow(SimpleTestCase):
    def test_every_url(self):
        known = {row["route"] for row in rows_of(TABLE)}
        missing = {name for name, _ in routes() if not name.startswith("admin:")} - known
        self.assertEqual(missing, set(), "routes without a row in the access matrix")


@pytest.mark.slow
class Matrix(TransactionTestCase):
    """All rows share one world, because creating one for each would take minutes."""

    def setUp(self):
        self.enterContext(AsyncSingleThreadContext())  # one thread for all requests
        self.files = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.files)
        overridden = override_settings(
            MEDIA_ROOT=self.files, PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]
        )
        overridden.enable()
        self.addCleanup(overridden.disable)
        self.world = World()
        self.sign_everyone_in()
        logging.disable(logging.WARNING)  # the test causes hundreds of refusals
        self.addCleanup(logging.disable, logging.NOTSET)

    def sign_everyone_in(self):
        self.clients = {role: Client(raise_request_exception=False) for role in ROLES}
        self.world.people["disabled"].is_active = True
        for role, person in self.world.people.items():
            self.clients[role].force_login(person)
        self.world.disable()

    def ask(self, row, role, arguments):
        path = address(row["route"], arguments)
        if row["auth"] == "session":
            client, headers = self.clients[role], {}
        else:
            client = Client(raise_request_exception=False)
            headers = {"Authorization": f"Bearer {self.world.keys.get(role, 'chs_wrong')}"}
        return client.generic(row["method"], path, b"", content_type="application/json", headers=headers)

    @pytest.mark.timeout(LONG_SECONDS)  # several thousand requests
    def test_every_row(self):
        wrong = []
        for row in rows_of(TABLE):
            for role in ROLES:
                BEFORE.get(row["route"], lambda world: None)(self.world)
                answer = self.ask(row, role, self.world.arguments)
                if fault := self.fault(row, role, answer):
                    wrong.append(f"{row['method']} {row['route']} as {role} by {row['auth']}: {fault}")
                # Refused requests, and those of other people without an id, do not change the owner's things.
                changed = row["method"] != "GET" and answer.status_code < 400
                if (changed and (role == "owner" or self.names_things(row))) or row["route"] in BEFORE:
                    self.world.restore()
                if row["route"] in {"accounts:sign-out", "accounts:sessions"}:
                    self.sign_everyone_in()
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def names_things(self, row):
        """Whether the address of a row contains an id."""
        return address(row["route"], self.world.arguments) != address(row["route"], self.world.nothing)

    def fault(self, row, role, answer):
        """What is wrong with an answer, or None."""
        outcome, got = row[role], f"{answer.status_code}, not {row[role]}: {plain(answer)[:120]!r}"
        if answer.status_code >= 500:
            return got
        if outcome == "absent":
            unknown = self.ask(row, role, self.world.nothing)
            if (answer.status_code, unknown.status_code) != (404, 404):
                return got
            return None if plain(answer) == plain(unknown) else "differs from the answer for an unknown id"
        if outcome == "sign-in":
            return None if leads_to_sign_in(answer) else got
        if outcome in {"401", "403"}:
            return None if answer.status_code == int(outcome) else got
        assert outcome == "yes", outcome
        refused = answer.status_code in {401, 403, 404, 405} or leads_to_sign_in(answer)
        return got if refused else None

    def test_the_admin_is_closed_to_all_but_staff(self):
        open_doors = []
        for name, path in admin_addresses():
            for role in ROLES:
                if role == "staff" or name in ADMIN_OPEN_TO_ALL:
                    continue
                answer = self.clients[role].get(path)
                if answer.status_code not in {403, 404, 405} and not leads_to_sign_in(answer):
                    open_doors.append(
                        f"{path} as {role}: {answer.status_code} {answer.headers.get('Location')}"
                    )
        self.assertEqual(open_doors, [])

    def test_staff_can_open_the_admin(self):
        for path in ("/admin/", "/admin/accounts/user/"):
            self.assertEqual(self.clients["staff"].get(path).status_code, 200, path)


def leads_to_sign_in(answer):
    location = answer.headers.get("Location", "")
    return answer.status_code == 302 and location.startswith((
        str(settings.LOGIN_URL) if str(settings.LOGIN_URL).startswith("/") else "/accounts/sign-in/",
        "/admin/login/",
    ))  # fmt: skip


def plain(answer):
    """The body without the parts that differ between requests."""
    if answer.streaming and answer.is_async:
        return "a stream"
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return CHANGING.sub("", body.decode("utf-8", "replace"))
