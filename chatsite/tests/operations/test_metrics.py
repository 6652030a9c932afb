"""Metrics for Prometheus: numbers of all processes, for permitted callers, in its format."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
import yaml
from django.conf import settings
from django.db import OperationalError, connection
from django.test import SimpleTestCase, TransactionTestCase, override_settings
from django.utils import timezone

from chatsite import metrics
from chatsite.accounts.models import WebhookDelivery, WebhookEndpoint
from chatsite.server import metrics_page
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import METRICS_TOKEN
from ingestion.tests.factories import make_user

SAMPLE = re.compile(
    r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+|\+Inf)', re.ASCII
)
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
NAME = re.compile(r"\bchatsite_[a-z_]+")


def samples(text):
    """{(name, {label: value} as items): number} of a page."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, number = SAMPLE.fullmatch(line).groups()
            found[name, tuple(LABEL.findall(labels or ""))] = float(number)
    return found


def ended_process():
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


class Processes(SimpleTestCase):
    """The files of several processes, in the form in which they write them."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, pid, numbers, written=None):
        path = self.folder / f"{pid}-{os.urandom(4).hex()}.json"
        written = time.time() if written is None else written
        path.write_text(json.dumps({"written": written, "metrics": numbers}))
        return path

    def numbers(self):
        return samples(metrics.exposition(metrics.gathered(self.folder)))

    def counted(self, count, running):
        seconds = [0.0] * (len(metrics.SECONDS) + 2)
        seconds[3], seconds[-1] = count, count * 0.04
        return {
            "chatsite_requests_total": [[["GET", "chat", "200"], [count]]],
            "chatsite_search_seconds": [[["scan"], seconds]],
            "chatsite_runs_running": [[[], [running]]],
        }

    def test_counters_and_gauges_of_living_processes_are_added_up(self):
        self.write(os.getpid(), self.counted(3, 2))
        self.write(os.getppid(), self.counted(4, 5))
        found = self.numbers()
        self.assertEqual(
            found["chatsite_requests_total", (("method", "GET"), ("route", "chat"), ("status", "200"))], 7
        )
        self.assertEqual(found["chatsite_runs_running", ()], 7)
        self.assertEqual(found["chatsite_search_seconds_count", (("plan", "scan"),)], 7)
        self.assertAlmostEqual(found["chatsite_search_seconds_sum", (("plan", "scan"),)], 0.28)

    def test_counters_of_an_ended_process_stay_and_its_gauges_do_not(self):
        route = ("chatsite_requests_total", (("method", "GET"), ("route", "chat"), ("status", "200")))
        self.write(os.getpid(), self.counted(3, 2))
        self.write(ended_process(), self.counted(4, 5))
        # Written before its id was reused.
        self.write(os.getppid(), self.counted(1, 9), written=time.time() - 3_600)
        for round_ in ("before they are added up", "after", "and again"):
            with self.subTest(round_):
                found = self.numbers()
                self.assertEqual(found[route], 8)
                self.assertEqual(found["chatsite_runs_running", ()], 2)
                metrics.merge_ended(self.folder)
        self.assertEqual(len(list(self.folder.glob("*-*.json"))), 1)

    def test_a_file_that_was_added_up_but_not_removed_counts_once(self):
        self.write(ended_process(), self.counted(4, 0))
        with mock.patch.object(Path, "unlink", side_effect=OSError), self.assertRaises(OSError):
            metrics.merge_ended(self.folder)
        route = ("chatsite_requests_total", (("method", "GET"), ("route", "chat"), ("status", "200")))
        self.assertEqual(self.numbers()[route], 4)
        metrics.merge_ended(self.folder)
        self.assertEqual(self.numbers()[route], 4)

    def test_files_of_another_version_and_truncated_ones_are_ignored(self):
        self.write(os.getpid(), self.counted(3, 2))
        self.write(os.getpid(), {"chatsite_search_seconds": [[["scan"], [1.0, 2.0]]], "of_old": [[[], [1]]]})
        self.write(os.getpid(), {"chatsite_requests_total": [[["GET"], [1]]]})
        (self.folder / f"{os.getpid()}-half.json").write_text('{"written": 1')
        self.assertEqual(self.numbers()["chatsite_search_seconds_count", (("plan", "scan"),)], 3)

    def test_a_process_writes_until_its_end_and_marks_it(self):
        recorder = metrics.Recorder(self.folder, "web")
        recorder.start()
        self.assertEqual(self.numbers()["chatsite_processes", (("kind", "web"),)], 1)
        recorder.stop()
        self.assertNotIn(("chatsite_processes", (("kind", "web"),)), self.numbers())
        self.assertGreater(self.numbers()["chatsite_process_cpu_seconds_total", (("kind", "web"),)], 0)

    def test_a_folder_that_cannot_be_written_stops_nothing(self):
        (self.folder / "file").write_text("")
        recorder = metrics.Recorder(self.folder / "file" / "metrics", "web")
        recorder.start()
        recorder.stop()

    def test_buckets_are_cumulative_and_labels_escaped(self):
        seconds = [0.0] * (len(metrics.SECONDS) + 2)
        seconds[0], seconds[1], seconds[-2], seconds[-1] = 1, 2, 1, 40.5
        self.write(os.getpid(), {"chatsite_request_seconds": [[['a\\b"c\nd'], seconds]], "chatsite_jobs": []})
        text = metrics.exposition(metrics.gathered(self.folder))
        self.assertIn('route="a\\\\b\\"c\\nd"', text)
        route = ("route", 'a\\\\b\\"c\\nd')
        found = samples(text)
        bucket = "chatsite_request_seconds_bucket"
        self.assertEqual(found[bucket, (route, ("le", "0.005"))], 1)
        self.assertEqual(found[bucket, (route, ("le", "0.01"))], 3)
        self.assertEqual(found[bucket, (route, ("le", "30"))], 3)
        self.assertEqual(found[bucket, (route, ("le", "+Inf"))], 4)
        self.assertEqual(found["chatsite_request_seconds_count", (route,)], 4)
        for name, metric in metrics.METRICS.items():
            self.assertIn(f"# TYPE {name} {metric.kind}\n", text)


class Access(TransactionTestCase):
    TOKEN = "a-token-of-some-length"

    def setUp(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        overridden = override_settings(DATA_DIR=folder)
        overridden.enable()
        self.addCleanup(overridden.disable)

    def ask(self, token="", address="127.0.0.1", **headers):
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.client.get("/metrics", REMOTE_ADDR=address, headers=headers)

    def test_without_the_setting_there_is_no_metrics_page(self):
        unknown = self.client.get("/metricz")
        for token in ("", "x", self.TOKEN):
            answer = self.ask(token)
            self.assertEqual(
                (answer.status_code, answer.content), (404, unknown.content.replace(b"metricz", b"metrics"))
            )

    @override_settings(METRICS_TOKEN=TOKEN)
    def test_only_the_token_opens_the_metrics_page(self):
        self.assertEqual(self.ask(self.TOKEN).status_code, 200)
        for token in ("", "x", self.TOKEN + "x", self.TOKEN[:-1], "ä"):
            with self.subTest(token):
                self.assertEqual(self.ask(token).status_code, 404)
        self.assertEqual(self.client.post("/metrics").status_code, 405)

    @override_settings(METRICS_ADDRESSES=["10.0.0.0/24", "127.0.0.1"])
    def test_a_listed_address_opens_the_metrics_page_unless_it_is_a_proxy(self):
        self.assertEqual(self.ask(address="10.0.0.7").status_code, 200)
        self.assertEqual(self.ask(address="10.0.1.7").status_code, 404)
        self.assertEqual(self.ask(address="").status_code, 404)
        for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
            with self.subTest(name):
                self.assertEqual(self.ask(address="127.0.0.1", **{name: "10.0.0.7"}).status_code, 404)

    @override_settings(METRICS_TOKEN=TOKEN, DATABASE_SECONDS=HANG_SECONDS)
    def test_the_page_has_metrics_of_the_database(self):
        with connection.cursor() as cursor:  # rows of earlier tests: a flush does not know this table
            cursor.execute("DELETE FROM procrastinate_jobs")
        owner = make_user()
        for paused in (None, timezone.now() + timedelta(minutes=1)):
            endpoint = WebhookEndpoint.objects.create(owner=owner, events=[], paused_until=paused)
            late = timezone.now() - timedelta(minutes=5)
            WebhookDelivery.objects.create(endpoint=endpoint, event="webhook.test", data={}, next_at=late)
        with mock.patch.object(metrics_page, "DATABASE_SECONDS", HANG_SECONDS):
            found = samples(self.ask(self.TOKEN).text)
        self.assertEqual(found["chatsite_database_up", ()], 1)
        self.assertEqual(found["chatsite_webhooks_due", ()], 1)
        self.assertAlmostEqual(found["chatsite_oldest_webhook_seconds", ()], 300, delta=HANG_SECONDS)
        self.assertEqual(found["chatsite_jobs", (("state", "todo"),)], 0)
        self.assertEqual(found["chatsite_oldest_job_seconds", ()], 0)
        self.assertEqual(found["chatsite_leases", (("state", "expired"),)], 0)

    @override_settings(METRICS_TOKEN=TOKEN)
    def test_without_the_database_the_page_has_the_other_metrics(self):
        with mock.patch.object(metrics_page, "in_database_within_budget", side_effect=OperationalError):
            answer = self.ask(self.TOKEN)
        self.assertEqual(answer.status_code, 200)
        self.assertEqual(samples(answer.text)["chatsite_database_up", ()], 0)


class FilesOfDeploy(SimpleTestCase):
    def exported(self):
        names = set()
        for name, metric in metrics.METRICS.items():
            ends = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
            names |= {name + end for end in ends}
        return names

    def test_the_dashboard_and_alerts_use_exactly_the_exported_names(self):
        deploy = settings.BASE_DIR / "deploy"
        dashboard = json.loads((deploy / "grafana-dashboard.json").read_text())
        asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        rules = yaml.safe_load((deploy / "alerts.yaml").read_text())["groups"][0]["rules"]
        alerts = [rule["expr"] for rule in rules]
        used = {name for query in [*asked, *alerts] for name in NAME.findall(query)}
        self.assertEqual(used - self.exported(), set())
        shown = {re.sub("_(bucket|sum|count)$", "", name) for name in NAME.findall(" ".join(asked))}
        self.assertEqual(set(metrics.METRICS) - shown, set())
        self.assertEqual(len(rules), 5)


@pytest.mark.server
def test_a_question_and_its_page_are_counted_by_the_process_that_answered(site):
    def numbers():
        headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
        return samples(site.session().request("GET", "/metrics", headers=headers).text)

    before = numbers()
    employee = site.sign_in("employee")
    answer = employee.post_json("/chat", {"messages": [{"role": "user", "content": "How many days off?"}]})
    assert answer.status == 200
    ended = ("chatsite_runs_total", (("state", "complete"),))
    looked = ("chatsite_database_look_seconds", ())  # missing if the database was slow
    deadline = time.monotonic() + HANG_SECONDS
    while (after := numbers()).get(ended, 0) <= before.get(ended, 0) or looked not in after:
        assert time.monotonic() < deadline, after
        time.sleep(0.1)
    assert after["chatsite_first_token_seconds_count", ()] > before["chatsite_first_token_seconds_count", ()]
    grown = {name for (name, _), value in after.items() if value > 0}
    assert {
        "chatsite_requests_total",
        "chatsite_request_seconds_count",
        "chatsite_search_seconds_count",
        "chatsite_database_pool",
        "chatsite_process_peak_bytes",
        "chatsite_database_look_seconds",
    } <= grown
    assert after["chatsite_processes", (("kind", "web"),)] == 1
    assert after["chatsite_breakers_open", (("server", "database"),)] == 0
