"""What the documents promise about the site's settings is what the site reads, and what deploy/ sets."""

import re

import uvicorn
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.test import SimpleTestCase

from chatsite.server.processes import STOP_SECONDS

READ = re.compile(r'environment\.\w+\(\s*"([A-Z0-9_]+)"|environ(?:\.get)?[\[(]"([A-Z0-9_]+)"')
ROW = re.compile(r"^\| (`[A-Z].*?) \|", re.MULTILINE)
FOR_TESTS = {"CHATSITE_TEST_DATABASE"}


class ConfigurationTests(SimpleTestCase):
    def read(self):
        """All variables that a module of the product reads."""
        modules = [
            path
            for package in ("chatsite", "chat", "history", "ingestion")
            for path in (settings.BASE_DIR / package).rglob("*.py")
            if "tests" not in path.parts
        ]
        found = [names for path in modules for names in READ.findall(path.read_text())]
        return {first or second for first, second in found}

    def test_every_variable_that_is_read_has_a_row_and_every_row_is_read(self):
        rows = ROW.findall((settings.BASE_DIR / "docs" / "configuration.md").read_text())
        documented = {name for row in rows for name in re.findall(r"`([A-Z0-9_]+)`", row)}
        self.assertEqual(documented, self.read() - FOR_TESTS)


class DeployTests(SimpleTestCase):
    """The files in deploy/ hold what the site's settings and docs/deploy.md rest on."""

    def setUp(self):
        folder = settings.BASE_DIR / "deploy"
        self.compose = yaml.safe_load((folder / "compose.yaml").read_text())
        self.nginx = (folder / "nginx.conf").read_text()
        self.example = dict(
            re.findall(r"^([A-Z0-9_]+)=(.*)$", (folder / "example.env").read_text(), re.MULTILINE)
        )
        self.sites = [part for part in self.compose["services"].values() if part["image"] == "chatsite"]

    def seconds(self, text):
        return int(re.search(rf"{text}[ \"']+(\d+)", self.nginx).group(1))

    def test_every_variable_that_is_set_is_one_that_the_site_reads(self):
        rows = ROW.findall((settings.BASE_DIR / "docs" / "configuration.md").read_text())
        documented = {name for row in rows for name in re.findall(r"`([A-Z0-9_]+)`", row)}
        for part in self.sites:
            self.assertEqual(set(part["environment"]) - documented, set())

    def test_every_variable_that_is_filled_in_stands_in_the_example(self):
        text = (settings.BASE_DIR / "deploy" / "compose.yaml").read_text()
        self.assertEqual(set(re.findall(r"\$\{([A-Z0-9_]+)", text)), set(self.example))

    def test_whoever_stops_a_machine_waits_until_its_answers_are_finished(self):
        for part in self.sites:
            grace = int(part["environment"]["CHATSITE_GRACE_SECONDS"]) + STOP_SECONDS
            self.assertGreater(int(part["stop_grace_period"].removesuffix("s")), grace)

    def test_the_commands_are_the_sites_own(self):
        commands = get_commands()
        for part in self.sites:
            if "entrypoint" not in part:
                name, *arguments = part["command"]
                load_command_class(commands[name], name).create_parser("manage.py", name).parse_args(
                    arguments
                )

    def test_nginx_outwaits_the_longest_answer_and_leaves_a_kept_connection_before_the_site_does(self):
        self.assertGreater(self.seconds("proxy_read_timeout"), settings.ANSWER_TOTAL_SECONDS)
        self.assertLess(self.seconds("keepalive_timeout"), uvicorn.Config("").timeout_keep_alive)
        self.assertIn("proxy_buffering off;", self.nginx)

    def test_nginx_takes_bodies_as_large_as_the_site_does_and_at_the_same_addresses(self):
        limits = [
            int(megabytes) * 1_000_000 for megabytes in re.findall(r"max_body_size (\d+)m;", self.nginx)
        ]
        self.assertEqual(
            limits, [settings.BODY_LIMIT, settings.UPLOAD_BODY_LIMIT, settings.ATTACHMENT_BODY_LIMIT]
        )
        uploads, attachments = map(re.compile, re.findall(r"location ~ (\S+) \{", self.nginx))
        for path in (
            "/documents/add/",
            "/admin/ingestion/document/1/change/",
            "/chat",
            "/ask/stream",
            "/chat//stream",
            "/v1/chat/completions",
            "/v1/embeddings",
        ):
            images = settings.ATTACHMENT_PATHS + settings.IMAGE_PATHS
            for pattern, ours in ((uploads, settings.UPLOAD_PATHS), (attachments, images)):
                self.assertEqual(
                    bool(pattern.search(path)), any(re.search(each, path) for each in ours), path
                )
