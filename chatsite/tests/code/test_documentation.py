"""The documented settings are those that the site reads and that deploy/ sets."""

import re
import shlex
from pathlib import Path

import uvicorn
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.test import SimpleTestCase

from chatsite import environment
from chatsite.server.processes import STOP_SECONDS
from chatsite.server.product_version import product_version

READ = re.compile(r'environment\.\w+\(\s*"([A-Z0-9_]+)"|environ(?:\.get)?[\[(]"([A-Z0-9_]+)"')
ROW = re.compile(r"^\| (`[A-Z].*?) \|", re.MULTILINE)
FOR_TESTS = {"CHATSITE_TEST_DATABASE"}


class ConfigurationTests(SimpleTestCase):
    def read(self):
        """All environment variables that modules of the product read."""
        modules = [
            path
            for package in ("chatsite", "chat", "history", "ingestion")
            for path in (settings.BASE_DIR / package).rglob("*.py")
            if "tests" not in path.parts
        ]
        found = [names for path in modules for names in READ.findall(path.read_text())]
        return {first or second for first, second in found}

    def test_every_variable_has_a_row_and_every_row_is_read(self):
        rows = ROW.findall((settings.BASE_DIR / "docs" / "configuration.md").read_text())
        documented = {name for row in rows for name in re.findall(r"`([A-Z0-9_]+)`", row)}
        self.assertEqual(documented, self.read() - FOR_TESTS)


class MergedTests(SimpleTestCase):
    """No text has the two versions between which a merge had to decide."""

    MARKER = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
    ENDINGS = {".css", ".html", ".js", ".md", ".po", ".py", ".sql", ".toml", ".yaml", ".yml"}

    def test_no_file_has_markers_of_a_conflict(self):
        root = settings.BASE_DIR
        folders = ["chat", "chatsite", "history", "ingestion", "docs", "deploy", "static", "templates"]
        files = [*root.glob("*.*"), *(file for each in folders for file in (root / each).rglob("*.*"))]
        texts = [file for file in files if file.suffix in self.ENDINGS and file.is_file()]
        self.assertGreater(len(texts), 500)
        self.assertEqual([str(file) for file in texts if self.MARKER.search(file.read_text())], [])


class MaintainersTests(SimpleTestCase):
    """Everything that CONTRIBUTING.md and ARCHITECTURE.md name exists."""

    PATH = re.compile(r"`((?:chat|chatsite|history|ingestion|docs|deploy|static|templates|locale)/[\w./-]+)`")
    NAME_IN = re.compile(
        r"`(\w+)`(?: or `(\w+)`)?\s+(?:in|of|to|\()\s*`((?:chat|chatsite|history|ingestion)/[\w./]+\.py)`"
    )

    def test_every_path_exists_and_every_name_is_in_the_module_that_is_named_with_it(self):
        for document in ("CONTRIBUTING.md", "ARCHITECTURE.md"):
            text = (settings.BASE_DIR / document).read_text().partition("## Where planned")[0]
            paths, names = set(self.PATH.findall(text)), self.NAME_IN.findall(text)
            self.assertGreater(len(paths), 10)
            for path in paths:
                self.assertTrue("NAME" in path or (settings.BASE_DIR / path).exists(), f"{document}: {path}")
            for *named, path in names:
                module = (settings.BASE_DIR / path).read_text()
                for name in filter(None, named):
                    self.assertRegex(module, rf"\b{name}\b", f"{document}: {name} in {path}")


class DeployTests(SimpleTestCase):
    """The files in deploy/ contain what the site's settings and docs/deploy.md rely on."""

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

    def test_every_variable_that_is_set_is_read_by_the_site(self):
        rows = ROW.findall((settings.BASE_DIR / "docs" / "configuration.md").read_text())
        documented = {name for row in rows for name in re.findall(r"`([A-Z0-9_]+)`", row)}
        documented |= {f"{name}_FILE" for name in environment.SECRETS}
        for part in self.sites:
            self.assertEqual(set(part["environment"]) - documented, set())

    def test_every_secret_that_the_chart_and_the_compose_file_name_may_be_read_from_a_file(self):
        chart = (settings.BASE_DIR / "deploy" / "helm" / "templates" / "_pod.tpl").read_text()
        named = set(re.findall(r"name: ([A-Z0-9_]+)_FILE", chart))
        named |= set(re.findall(r'"[a-z0-9-]+" "([A-Z0-9_]+)"', chart))
        self.assertEqual(named, environment.SECRETS)
        for part in self.sites:
            given = {name.removesuffix("_FILE") for name in part["environment"] if name.endswith("_FILE")}
            self.assertLessEqual(given, environment.SECRETS)
            self.assertEqual(set(part["secrets"]) - set(self.compose["secrets"]), set())

    def test_systemd_units_start_the_sites_own_commands_and_outwait_running_answers(self):
        commands = get_commands()
        for path in (settings.BASE_DIR / "deploy" / "systemd").glob("*.service"):
            unit = path.read_text()
            with self.subTest(path.name):
                name, *arguments = shlex.split(re.search(r"bin/chatsite ([^'\n]+)", unit).group(1))
                load_command_class(commands[name], name).create_parser("chatsite", name).parse_args(arguments)
                if "Restart=" in unit:
                    seconds = int(re.search(r"TimeoutStopSec=(\d+)", unit).group(1))
                    self.assertGreater(seconds, settings.GRACE_SECONDS + STOP_SECONDS)

    def test_the_chart_is_of_the_products_version(self):
        chart = yaml.safe_load((settings.BASE_DIR / "deploy" / "helm" / "Chart.yaml").read_text())
        self.assertEqual({chart["version"], chart["appVersion"]}, {product_version()})

    def test_every_variable_that_is_filled_in_stands_in_the_example(self):
        text = (settings.BASE_DIR / "deploy" / "compose.yaml").read_text()
        self.assertEqual(set(re.findall(r"\$\{([A-Z0-9_]+)", text)), set(self.example))

    def test_stopping_a_machine_waits_until_its_answers_are_finished(self):
        for part in self.sites:
            grace = int(part["environment"]["CHATSITE_GRACE_SECONDS"]) + STOP_SECONDS
            self.assertGreater(int(part["stop_grace_period"].removesuffix("s")), grace)

    def test_the_list_of_erased_accounts_outlives_containers(self):
        """The image has the folder, because a volume gets the owner of the folder that it covers."""
        image = (settings.BASE_DIR / "deploy" / "Dockerfile").read_text()
        for part in self.sites:
            if "entrypoint" not in part:
                folder = str(Path(part["environment"]["CHATSITE_ERASED_LIST"]).parent)
                (volume,) = (text.split(":")[0] for text in part["volumes"] if text.split(":")[1] == folder)
                self.assertIn(volume, self.compose["volumes"])
                self.assertIn(f"install -d -o chatsite -m 700 {folder}\n", image)

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

    def test_nginx_accepts_the_same_body_sizes_as_the_site_at_the_same_addresses(self):
        limits = [
            int(megabytes) * 1_000_000 for megabytes in re.findall(r"max_body_size (\d+)m;", self.nginx)
        ]
        self.assertEqual(
            limits, [settings.BODY_LIMIT, settings.UPLOAD_BODY_LIMIT, settings.ATTACHMENT_BODY_LIMIT]
        )
        uploads, attachments = map(re.compile, re.findall(r"location ~ (\S+) \{", self.nginx))
        for path in (
            "/documents/add/",
            "/attach",
            "/c/6f1c9a52-4f9a-4a53-8b7e-0d4ec47f1a11/attach",
            "/projects/6f1c9a52-4f9a-4a53-8b7e-0d4ec47f1a11/attach",
            "/c/6f1c9a52-4f9a-4a53-8b7e-0d4ec47f1a11/ask",
            "/api/documents/wiki:leave",
            "/admin/ingestion/document/1/change/",
            "/chat",
            "/ask/stream",
            "/chat//stream",
            "/api/chat",
            "/api/chat/stream",
            "/v1/chat/completions",
            "/v1/embeddings",
        ):
            images = settings.ATTACHMENT_PATHS + settings.IMAGE_PATHS
            for pattern, ours in ((uploads, settings.UPLOAD_PATHS), (attachments, images)):
                self.assertEqual(
                    bool(pattern.search(path)), any(re.search(each, path) for each in ours), path
                )
