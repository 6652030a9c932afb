"""/api/projects, and the project of a conversation in /chat-history."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from django.test import TestCase

from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import Principal
from history import projects
from history.models import Conversation, Project
from ingestion.tests.factories import make_user


class ProjectsApiCase(TestCase):
    def setUp(self):
        self.user, self.other = make_user("ada"), make_user("eve")
        self.headers = self.key("chat")
        self.theirs = projects.create(Principal(self.other.pk, "command"), "Secret plans")

    def key(self, *scopes):
        return {"Authorization": f"Bearer {ApiKey.objects.issue(self.user, 'test', scopes=scopes)[1]}"}

    def send(self, method, path="", body=None, headers=None):
        send = getattr(self.client, method)
        arguments = () if body is None else (body, "application/json")
        return send(f"/api/projects{path}", *arguments, headers=headers or self.headers)

    def made(self, **values):
        answer = self.send("post", "", {"name": "Harbour works", **values})
        self.assertEqual(answer.status_code, 201, answer.content)
        return answer.json()


class ProjectsApiTests(ProjectsApiCase):
    def test_a_project_is_created_read_changed_and_deleted(self):
        made = self.made(instructions="As a table.", scope="folder:Works")
        self.assertEqual(
            {name: made[name] for name in ("name", "instructions", "scope", "conversations")},
            {
                "name": "Harbour works",
                "instructions": "As a table.",
                "scope": "folder:Works",
                "conversations": 0,
            },
        )
        path = f"/{made['id']}"
        self.assertEqual(self.send("get", path).json(), made)
        changed = self.send("patch", path, {"scope": "all"}).json()
        self.assertEqual(
            (changed["name"], changed["instructions"], changed["scope"]),
            ("Harbour works", "As a table.", "all"),
        )
        self.assertEqual(Project.objects.get(pk=made["id"]).scope, "")
        changed = self.send("patch", path, {"name": " Quay  walls ", "instructions": ""}).json()
        self.assertEqual((changed["name"], changed["instructions"]), ("Quay walls", ""))
        self.assertEqual(self.send("delete", path).status_code, 204)
        self.assertEqual(self.send("get", path).status_code, 404)

    def test_creating_a_project_returns_its_address(self):
        answer = self.send("post", "", {"name": "Harbour works"})
        self.assertEqual(answer.headers["Location"], f"/api/projects/{answer.json()['id']}")

    def test_the_list_has_the_callers_projects_the_last_used_first(self):
        now = datetime.now(UTC)
        for number in range(5):
            row = projects.create(Principal(self.user.pk, "command"), f"Project {number}")
            Project.objects.filter(pk=row.pk).update(updated_at=now - timedelta(hours=number))
        first = self.send("get", "?limit=2")
        self.assertEqual([row["name"] for row in first.json()], ["Project 0", "Project 1"])
        names, link = [], first.headers["Link"]
        while link:
            page = self.client.get(link.partition(">")[0][1:], headers=self.headers)
            names += [row["name"] for row in page.json()]
            link = page.headers.get("Link")
        self.assertEqual(names, ["Project 2", "Project 3", "Project 4"])
        self.assertEqual([row["name"] for row in self.send("get", "?q=3 proj").json()], ["Project 3"])
        self.assertEqual(self.send("get", "?cursor=x").status_code, 400)

    def test_projects_of_others_look_like_missing_ones(self):
        for path in (f"/{self.theirs.pk}", f"/{uuid4()}", "/x"):
            answers = [
                self.send("get", path),
                self.send("patch", path, {"name": "Mine"}),
                self.send("delete", path),
            ]
            self.assertEqual([answer.status_code for answer in answers], [404] * 3, path)
            self.assertEqual(answers[0].headers["Content-Type"], "application/problem+json")
        self.theirs.refresh_from_db()
        self.assertEqual(self.theirs.name, "Secret plans")
        self.assertEqual(self.send("get").json(), [])

    def test_a_key_requires_the_scope(self):
        headers = self.key("search", "documents:read")
        for method, path in (("get", ""), ("post", ""), ("get", f"/{self.theirs.pk}")):
            self.assertEqual(self.send(method, path, headers=headers).status_code, 403)

    def test_invalid_input_is_refused_with_its_member(self):
        kept = self.made()
        for body, pointer in (
            ({}, "/name"),
            ({"name": " "}, "/name"),
            ({"name": "x" * 101}, "/name"),
            ({"name": 7}, "/name"),
            ({"name": "x", "instructions": "y" * 1_001}, "/instructions"),
            ({"name": "x", "scope": "everywhere"}, "/scope"),
            ({"name": "x", "scope": "document:1"}, "/scope"),
            ({"name": "x", "colour": "red"}, "/colour"),
            ({"name": "x", "a/b~c": "red"}, "/a~1b~0c"),
        ):
            refused = self.send("post", "", body)
            self.assertEqual((refused.status_code, body), (400, body))
            self.assertEqual(refused.json()["errors"][0]["pointer"], pointer)
        refused = self.send("patch", f"/{kept['id']}", {"name": "", "instructions": "New."})
        self.assertEqual(refused.status_code, 400)
        self.assertEqual(self.send("get").json(), [kept])


class ConversationsOfProjectsTests(ProjectsApiCase):
    def setUp(self):
        super().setUp()
        self.project = self.made(scope="folder:Works")["id"]

    def history(self, method, path="", body=None):
        arguments = () if body is None else (body, "application/json")
        return getattr(self.client, method)(f"/chat-history{path}", *arguments, headers=self.headers)

    def test_a_conversation_is_started_in_a_project_listed_by_it_and_moved_out(self):
        made = self.history("post", "", {"title": "Cranes", "project_id": self.project})
        self.assertEqual(made.status_code, 201)
        row = self.history("get", f"/{made.json()['id']}").json()
        self.assertEqual(row["project_id"], self.project)
        self.assertEqual(Conversation.objects.get().scope, "folder:Works")
        self.history("post", "", {"title": "Other"})
        listed = self.history("get", f"?project_id={self.project}").json()
        self.assertEqual([each["title"] for each in listed], ["Cranes"])
        self.assertEqual(self.send("get", f"/{self.project}").json()["conversations"], 1)
        moved = self.history("patch", f"/{row['id']}", {"project_id": None}).json()
        self.assertNotIn("project_id", moved)
        moved = self.history("patch", f"/{row['id']}", {"project_id": self.project}).json()
        self.assertEqual(moved["project_id"], self.project)
        self.assertEqual(self.send("delete", f"/{self.project}").status_code, 204)
        self.assertNotIn("project_id", self.history("get", f"/{row['id']}").json())

    def test_a_project_of_others_cannot_be_used_and_nothing_else_changes(self):
        row = self.history("post", "", {"title": "Cranes"}).json()["id"]
        for project in (str(self.theirs.pk), str(uuid4()), "x", 7, True, [self.project]):
            for answer in (
                self.history("patch", f"/{row}", {"project_id": project, "title": "Changed"}),
                self.history("post", "", {"title": "New", "project_id": project}),
            ):
                self.assertEqual(answer.status_code, 400, project)
                self.assertIn("must be the id of one of your projects.", answer.text)
        self.assertEqual(list(Conversation.objects.values_list("title", "project")), [("Cranes", None)])
        self.assertEqual(self.history("get", f"?project_id={self.theirs.pk}").json(), [])
        self.assertEqual(self.history("get", "?project_id=x").status_code, 400)
