"""Wrong configurations, and servers that are too old."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import SimpleTestCase, TestCase, override_settings

from chatsite import checks, environment
from chatsite.checks import (
    check_address_settings,
    check_answer_settings,
    check_database_role,
    check_database_settings,
    check_dictionary,
    check_model_settings,
    check_names,
    check_reading_settings,
    check_secrets,
    check_storage_settings,
)
from chatsite.server import address
from chatsite.server.database_setup import complaint
from chatsite.server.refusal import StartRefused

WHOLE = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "", "CHAT_MODEL": "small", "EMBEDDING_MODEL": ""}


class ModelSettings(SimpleTestCase):
    def problems(self, dimensions="", **changes):
        with (
            override_settings(**(WHOLE | changes)),
            mock.patch.dict(os.environ, {"EMBEDDING_DIMENSIONS": dimensions}),
        ):
            return [problem.id for problem in check_model_settings(None)]

    def test_complete_and_empty_configurations_are_accepted(self):
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.problems(OPENAI_API_KEY="", OPENAI_BASE_URL="http://127.0.0.1:1/v1"), [])
        self.assertEqual(self.problems(EMBEDDING_MODEL="e", dimensions="64"), [])
        self.assertEqual(self.problems(CHAT_MODEL="", EMBEDDING_MODEL="e", dimensions="64"), [])
        self.assertEqual(self.problems(OPENAI_API_KEY="", CHAT_MODEL=""), [])

    def test_files_in_a_bucket_need_its_name_its_address_and_its_packages(self):
        with (
            override_settings(STORAGE="S3", S3_BUCKET="", S3_ENDPOINT="localhost"),
            mock.patch("chatsite.checks.find_spec", return_value=None),
        ):
            found = [problem.id for problem in check_storage_settings(None)]
        self.assertEqual(found, ["chatsite.E021", "chatsite.E022", "chatsite.E023"])
        with override_settings(STORAGE="FILESYSTEM", S3_BUCKET="files", S3_REGION="eu"):
            self.assertEqual(
                [problem.msg.partition(":")[0] for problem in check_storage_settings(None)],
                [
                    f"CHATSITE_S3_{name} is set, but CHATSITE_STORAGE is not s3"
                    for name in ("BUCKET", "REGION")
                ],
            )
        self.assertEqual(check_storage_settings(None), [])

    def test_a_direct_address_requires_a_pooler(self):
        with mock.patch.dict(os.environ, {"DATABASE_DIRECT_URL": "postgresql://a@b/c", "DATABASE_URL": ""}):
            self.assertEqual([problem.id for problem in check_database_settings(None)], ["chatsite.E061"])
        with mock.patch.dict(os.environ, {"DATABASE_DIRECT_URL": "", "DATABASE_URL": ""}):
            self.assertEqual(check_database_settings(None), [])

    def test_a_lease_outlasts_a_few_writes_of_the_journal(self):
        with override_settings(LEASE_SECONDS=1.0, JOURNAL_FLUSH_SECONDS=1.0):
            (problem,) = check_answer_settings(None)
        self.assertEqual(
            (problem.id, problem.msg),
            (
                "chatsite.E071",
                "CHATSITE_LEASE_SECONDS must be at least 5, 5 times CHATSITE_JOURNAL_FLUSH_SECONDS, not 1.",
            ),
        )
        with override_settings(LEASE_SECONDS=1.0, JOURNAL_FLUSH_SECONDS=0.2):
            self.assertEqual(check_answer_settings(None), [])

    def test_languages_of_text_recognition_are_tesseract_names_or_empty(self):
        for wrong in ("eng,deu", "eng deu", "--help", "../eng", "eng+"):
            with override_settings(OCR_LANGUAGES=wrong):
                self.assertEqual(
                    [problem.id for problem in check_reading_settings(None)], ["chatsite.E081"], wrong
                )
        for right in ("", "eng", "eng+chi_sim"):
            with override_settings(OCR_LANGUAGES=right):
                self.assertEqual(check_reading_settings(None), [], right)

    def test_a_configured_dictionary_must_exist(self):
        with override_settings(DICTIONARY="/nowhere/de-en"):
            self.assertEqual([problem.id for problem in check_dictionary(None)], ["chatsite.E082"])
        for right in ("", __file__):
            with override_settings(DICTIONARY=right):
                self.assertEqual(check_dictionary(None), [], right)

    def test_an_empty_list_of_languages_means_none_and_a_missing_one_english(self):
        for value, languages in (({}, "eng"), ({"CHATSITE_OCR_LANGUAGES": ""}, "")):
            with mock.patch.dict(os.environ, value):
                if not value:
                    os.environ.pop("CHATSITE_OCR_LANGUAGES", None)
                found = environment.optional_text("CHATSITE_OCR_LANGUAGES", "eng")
                self.assertEqual(found, languages)

    def test_a_value_that_is_not_text_is_refused_and_not_repeated(self):
        with (
            mock.patch.dict(os.environ, {"DATABASE_URL": "postgresql://a:secret\udcff@b/c"}),
            self.assertRaisesMessage(ImproperlyConfigured, "DATABASE_URL must be text in UTF-8."),
        ):
            environment.database_url("DATABASE_URL")

    def test_each_setting_is_known_whatever_the_others_are(self):
        """A setting that is only read depending on another one would be refused as misspelt."""
        text = (Path(settings.BASE_DIR) / "chatsite" / "settings.py").read_text()
        names = set(re.findall(r'environment\.\w+\(\s*"(\w+)"', text))
        self.assertIn("CHATSITE_DOCUMENT_QUESTIONS", names)
        self.assertEqual(names - environment.variables.keys(), set())

    def test_each_problem_has_an_id_of_its_own(self):
        """Each id belongs to one message of one check."""
        tree = ast.parse(Path(checks.__file__).read_text())
        ids = [
            node.value.removeprefix("chatsite.")
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"(chatsite\.)?[EW][0-9]{3}", node.value)
        ]
        self.assertGreater(len(ids), 25)
        self.assertEqual([name for name, times in Counter(ids).items() if times > 1], [])

    def test_a_key_without_a_model(self):
        self.assertEqual(self.problems(CHAT_MODEL=""), ["chatsite.E001"])

    def test_a_model_without_a_key_or_an_address(self):
        self.assertEqual(self.problems(OPENAI_API_KEY=""), ["chatsite.E002"])

    def test_an_embedding_model_without_its_dimensions_or_a_server(self):
        self.assertEqual(self.problems(EMBEDDING_MODEL="e"), ["chatsite.E004"])
        found = self.problems(OPENAI_API_KEY="", CHAT_MODEL="", EMBEDDING_MODEL="e", dimensions="64")
        self.assertEqual(found, ["chatsite.E003"])

    def test_an_invalid_address_is_refused(self):
        self.assertEqual(self.problems(OPENAI_BASE_URL="localhost:8080"), ["chatsite.E005"])
        self.assertEqual(self.problems(OPENAI_BASE_URL="http://["), ["chatsite.E005"])

    def test_a_ranker_needs_a_server_with_a_valid_address(self):
        self.assertEqual(self.problems(RERANK_MODEL="r", RERANK_BASE_URL=""), ["chatsite.E006"])
        self.assertEqual(self.problems(RERANK_MODEL="r", RERANK_BASE_URL="localhost"), ["chatsite.E007"])
        self.assertEqual(self.problems(RERANK_MODEL="r", RERANK_BASE_URL="http://127.0.0.1:9/v1"), [])


class AddressSettings(SimpleTestCase):
    def told(self, check=check_address_settings, **changes):
        with override_settings(**changes):
            return [problem.msg for problem in check(None)]

    def test_hosts_that_can_match_a_request_are_accepted(self):
        for host in (
            "ask.example.org",
            ".example.org",
            "localhost",
            "127.0.0.1",
            "[::1]",
            "*",
            "Ask.Example.org",
        ):
            self.assertEqual(self.told(ALLOWED_HOSTS=[host]), [], host)

    def test_hosts_that_can_never_match_are_reported_with_a_correction(self):
        for wrong, right in {
            "http://ask.example.org:8000/x": "ask.example.org",
            "https://[::1]/": "[::1]",
            "ask.example.org:8000": "ask.example.org",
            "ask.example.org/portal": "ask.example.org",
            "*.example.org": ".example.org",
            "::1": "[::1]",
            "bücher.example": "xn--bcher-kva.example",
            "a b": "ask.example.org",
            "http://[": "ask.example.org",
        }.items():
            [told] = self.told(ALLOWED_HOSTS=[wrong])
            self.assertEqual(told, f"CHATSITE_ALLOWED_HOSTS: write {right} instead of {wrong}.")

    def test_invalid_origins_are_reported_with_a_correction(self):
        for right in ("https://ask.example.org", "http://localhost:8000", "https://*.example.org"):
            self.assertEqual(self.told(CSRF_TRUSTED_ORIGINS=[right]), [], right)
        for wrong, right in {
            "ask.example.org": "https://ask.example.org",
            "https://Ask.example.org/": "https://ask.example.org",
            "ftp://ask.example.org": "https://ask.example.org",
        }.items():
            [told] = self.told(CSRF_TRUSTED_ORIGINS=[wrong])
            self.assertEqual(told, f"CHATSITE_TRUSTED_ORIGINS: write {right} instead of {wrong}.")

    def test_proxies_are_addresses_or_networks(self):
        self.assertEqual(self.told(TRUSTED_PROXIES=["10.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"]), [])
        for wrong in ("nginx", "*", "10.0.0.1:80", "http://10.0.0.1", "10.0.0.1/8"):
            self.assertEqual(len(self.told(TRUSTED_PROXIES=[wrong])), 1, wrong)

    def test_invalid_addresses_of_redis_are_reported(self):
        for url in ("redis://localhost", "rediss://:p@cache:6380/1", "unix:///run/redis.sock?db=1"):
            self.assertEqual(self.told(REDIS_URL=url), [], url)
        for url in (
            "localhost:6379",
            "http://localhost",
            "redis://",
            "redis://a:b",
            "redis://a/x",
            "unix://",
        ):
            self.assertEqual(len(self.told(REDIS_URL=url)), 1, url)

    def test_keys_that_no_header_can_carry(self):
        for key in ("sk-1 2", "sk-ü", "sk\n1"):
            self.assertEqual(len(self.told(check_secrets, OPENAI_API_KEY=key)), 1)

    def test_variables_set_by_kubernetes_are_not_misspelt_settings(self):
        linked = {
            "CHATSITE_SERVICE_HOST": "10.0.0.1",
            "CHATSITE_WEB_SERVICE_PORT_HTTP": "8000",
            "CHATSITE_PORT": "tcp://10.0.0.1:8000",
            "CHATSITE_PORT_8000_TCP_ADDR": "10.0.0.1",
        }
        with mock.patch.dict(os.environ, linked):
            self.assertEqual(self.told(check_names), [])
        with mock.patch.dict(os.environ, {"CHATSITE_REDIS_URL": "x", "CHATSITE_XYZ": "1"}):
            self.assertEqual(
                self.told(check_names),
                [
                    "CHATSITE_REDIS_URL is not a setting of this site: write REDIS_URL, or remove it.",
                    "CHATSITE_XYZ is not a setting of this site: docs/configuration.md lists all,"
                    " or remove it.",
                ],
            )


@pytest.mark.parametrize(
    ("server", "vector", "words"),
    [
        (150_012, "0.8.0", "PostgreSQL 16 or newer is needed; the database runs 15."),
        (160_000, None, "pgvector is missing"),
        (170_004, "0.7.4", "pgvector 0.8 or newer is needed; the database has 0.7.4."),
    ],
)
def test_an_old_database_server_is_named(server, vector, words):
    assert words in complaint(server, vector)


def test_a_recent_database_server_is_fine():
    assert complaint(160_000, "0.8.0") is None
    assert complaint(180_001, "0.10.1") is None


def test_another_operating_system_than_linux_is_refused_in_one_line():
    for platform in ("darwin", "win32"):
        code = f"import sys; sys.platform = {platform!r}; from chatsite.command_line import main; main()"
        done = subprocess.run([sys.executable, "-c", code, "up"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert done.stderr.startswith("chatsite needs Linux")


def test_a_site_on_every_interface_is_reached_through_loopback():
    with address.take("0.0.0.0", 0) as listener:
        assert address.url(listener).startswith("http://127.0.0.1:")


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_out_of_range_is_refused(port):
    with pytest.raises(StartRefused, match="PORT must be between"):
        address.take("127.0.0.1", port)


class DatabaseRole(TestCase):
    def test_the_role_of_the_embedded_database_is_subject_to_row_level_security(self):
        self.assertEqual(check_database_role(None, ["default"]), [])

    @pytest.mark.skipif(not settings.EMBEDDED_DATABASE, reason="Needs a superuser.")
    def test_a_superuser_role_causes_a_warning(self):
        superuser = connection.copy()
        superuser.settings_dict["USER"] = "postgres"
        superuser.settings_dict["OPTIONS"].pop("pool")
        self.addCleanup(superuser.close)
        with mock.patch("chatsite.checks.connections", {"default": superuser}):
            (warning,) = check_database_role(None, ["default"])
        self.assertEqual(warning.id, "chatsite.W001")
        self.assertIn("postgres is a superuser", warning.msg)

    def test_checks_of_settings_do_not_query_the_database(self):
        self.assertEqual(check_database_role(None), [])
