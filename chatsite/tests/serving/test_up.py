"""`manage.py up`: starting, stopping, crashing, starting again; on the real processes."""

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from urllib.parse import urlencode

import psycopg
import pytest
from django.core.management import CommandError, call_command
from psycopg.conninfo import make_conninfo

from chatsite.db.dropping import drop_database
from chatsite.server import database_setup
from chatsite.server.embedded_postgres import (
    Cluster,
    connection_parameters,
)
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.plugins.seed import sample
from chatsite.tests.server import BASE, METRICS_TOKEN, TOKEN, Site, alive, prepared, temporary_folder

pytestmark = pytest.mark.server

SECOND_START_SECONDS = 3  # on an idle machine
BESIDE_OTHERS = 5  # factor for pure CPU work on a busy machine
STOP_SECONDS = 8


@pytest.fixture(scope="module")
def folder():
    """A data directory that the tests of this module share, because a first start takes seconds."""
    path = prepared(temporary_folder(), demo=False)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def own_folder():
    """An empty data directory of one test, which may leave demo accounts in it."""
    path = temporary_folder()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(folder):
    """The running embedded PostgreSQL of that directory."""
    server = Cluster(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="class")
def plain(folder):
    """A running site without the demo, for tests that do not start one themselves."""
    with quiet(folder, CHATSITE_METRICS_TOKEN=METRICS_TOKEN) as site:
        yield site


def quiet(folder, **environment):
    """A site without the demo in a separate directory."""
    return Site(folder, demo=False, **environment)


class TestLife:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_ctrl_c_and_sigterm_stop_everything_with_status_0(self, folder, number):
        with quiet(folder, CHATSITE_DATABASE_THREADS="95") as site:
            site.wait_for_worker()
            children, postgres = site.children(), site.postgres()
            assert len(children) == 2
            assert postgres
            with psycopg.connect(**connection_parameters(folder)) as connection:
                accepted = int(connection.execute("SHOW max_connections").fetchone()[0])
            assert accepted > 95 + 14, "the web server opens more connections than the database accepts"
            begun = time.monotonic()
            assert site.stop(number) == 0
            assert time.monotonic() - begun < STOP_SECONDS + MARGIN_SECONDS
            assert not any(alive(process) for process in [*children, postgres])
            assert "Traceback" not in site.output

    def test_a_second_start_answers_within_three_seconds(self, folder):
        with quiet(folder):
            pass
        begun = time.monotonic()
        site = quiet(folder)
        with site:
            seconds = time.monotonic() - begun
            assert site.session().get("/readyz").status == 200
        assert seconds < SECOND_START_SECONDS * BESIDE_OTHERS

    def test_a_killed_site_leaves_no_child_and_the_next_start_works(self, folder):
        site = quiet(folder).start()
        children = site.children()
        site.kill()
        for child in children:
            child.wait(5)
        with quiet(folder) as again:
            assert again.session().get("/readyz").status == 200

    def test_while_web_servers_keep_crashing_callers_are_refused_at_once(self, folder):
        with quiet(folder, workers=0) as site:
            for _ in range(4):  # then the next start is four seconds away
                site.wait_for("chatsite.server.serving.web_process")
                site.kill_web()
                time.sleep(0.1)
            found = []
            for path, accept in (("/", "text/html"), ("/chat", "*/*"), ("/readyz", "*/*")):
                begun = time.monotonic()
                answer = site.session().get(path, Accept=accept)
                # The response does not wait for the next start, which would accept the request.
                assert time.monotonic() - begun < 3 + MARGIN_SECONDS
                found.append((answer.status, answer.headers["Content-Type"].partition(";")[0]))
                assert 2 <= int(answer.headers["Retry-After"]) <= 7
            assert found == [(503, "text/html"), (503, "application/json"), (503, "application/json")]
            site.wait_until_ready()
            assert {site.session().get("/healthz").status for _ in range(20)} == {200}


class WithoutLog(Site):
    """A site whose log is on a full disk."""

    def command(self):
        return ["sh", "-c", 'exec "$0" "$@" 2>/dev/full', *super().command()]


class TestFullLog:
    def test_a_site_whose_log_cannot_be_written_starts_its_processes_again(self, folder):
        with WithoutLog(folder, demo=False, workers=0) as site:
            before = site.children("chatsite.server.serving.web_process")
            site.kill_web()
            deadline = time.monotonic() + HANG_SECONDS
            while site.process.poll() is None and site.children("chatsite.server.serving.web_process") in (
                [],
                before,
            ):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            site.wait_until_ready()


class TestDemo:
    def test_an_empty_database_gets_three_accounts_that_can_sign_in(self, site):
        assert set(site.passwords) == {"employee", "hr", "admin"}
        for username in site.passwords:
            site.sign_in(username)
        assert site.sign_in("admin").get("/admin/").status == 200
        assert site.sign_in("hr").get("/admin/").status == 302

    def test_the_sign_in_page_shows_demo_accounts_except_the_administrator(self, site):
        page = site.session().get("/accounts/sign-in/").text
        shown = {name for name, password in site.passwords.items() if password in page}
        assert shown == {"employee", "hr"}

    def test_a_proxy_is_refused_as_long_as_their_passwords_are_known(self, site):
        page = site.session().get("/accounts/sign-in/", **{"X-Forwarded-For": "10.0.0.9"})
        assert page.status == 403
        assert "change their passwords or set CHATSITE_DEMO=0" in page.text
        assert not any(password in page.text for password in site.passwords.values())
        assert site.session().get("/readyz", Host="ask.example.org").status == 403

    def test_a_site_with_known_passwords_does_not_start_for_more_than_this_machine(self, own_folder):
        folder = own_folder
        with Site(folder, demo=True, workers=0) as site:
            assert site.passwords
        status, output = Site(folder, demo=True, workers=0, HOST="0.0.0.0").outcome()
        assert status == 1
        assert "still have their initial passwords (employee, hr, admin)" in output
        with quiet(folder, HOST="0.0.0.0") as site:  # CHATSITE_DEMO=0
            assert site.passwords == {}

    def test_demo_passwords_are_readable_only_by_the_owner_of_the_files(self, site):
        mode = (site.folder / "demo_accounts.json").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600

    def test_two_starts_on_one_external_database_do_not_collide_and_add_no_accounts(
        self, folder, cluster, external
    ):
        sites = [Site(folder, demo=True, DATABASE_URL=external) for _ in range(2)]
        try:
            for site in sites:
                site.spawn()
            for site in sites:
                site.wait_for_address()
                assert site.session().get("/readyz").status == 200
                assert site.passwords == {}
                assert "Demo accounts" not in site.session().get("/accounts/sign-in/").text
        finally:
            assert [site.stop() for site in sites] == [0, 0]
        with psycopg.connect(external) as connection:
            assert connection.execute("SELECT count(*) FROM accounts_user").fetchone() == (0,)

    def test_a_database_can_be_prepared_before_a_start_repeatedly(self, folder, cluster, external):
        environment = {**os.environ, "DATABASE_URL": external, "CHATSITE_DATA_DIR": str(folder)}
        for _ in range(2):
            command = [sys.executable, "manage.py", "prepare"]
            done = subprocess.run(
                command, cwd=BASE, env=environment, capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stdout) == (0, "The database is ready.\n"), done.stderr
        with psycopg.connect(external) as connection:
            assert connection.execute("SELECT count(*) FROM accounts_user").fetchone() == (0,)

    def test_a_stopping_site_releases_its_address_before_it_has_finished(self, folder):
        site = quiet(folder, CHATSITE_GRACE_SECONDS="20").start()
        session = site.session()
        head = f"POST /chat HTTP/1.1\r\nHost: {session.host}:{session.port}\r\nContent-Length: 10\r\n\r\n{{"
        with session.socket() as unfinished:
            unfinished.sendall(head.encode())
            time.sleep(0.3)
            site.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + HANG_SECONDS
            while not refused(session):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert site.process.poll() is None
        assert site.stop(signal.SIGTERM) == 0


def refused(session):
    try:
        session.socket().close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.fixture
def external(folder, cluster):
    """The address of an empty database, as an external one."""
    parameters = connection_parameters(folder)
    with psycopg.connect(**parameters, autocommit=True) as connection:
        drop_database(connection, "elsewhere")
        connection.execute("CREATE DATABASE elsewhere")
    return make_conninfo(**{**parameters, "dbname": "elsewhere"})


class TestRunning:
    def test_the_address_is_printed_once_and_no_server_is_named(self, plain):
        assert plain.output.count("http://") == 1
        assert plain.output.count("answers at") == 1
        answer = plain.session().get("/healthz")
        assert "Server" not in answer.headers
        assert answer.json() == {"status": "ok"}
        assert plain.session().post("/healthz", {}).status == 405

    def test_without_the_demo_there_are_no_demo_accounts(self, plain):
        assert plain.passwords == {}
        assert not (plain.folder / "demo_accounts.json").exists()

    def test_forged_addresses_give_no_more_guesses(self, plain):
        session = plain.session()
        token = TOKEN.search(session.get("/accounts/sign-in/").text).group(1)
        fields = {"csrfmiddlewaretoken": token, "username": "nobody", "password": "wrong"}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        for number in range(11):
            headers = kind | {"X-Forwarded-For": f"10.0.0.{number}"}
            page = session.request("POST", "/accounts/sign-in/", urlencode(fields).encode(), headers).text
        assert "There were too many wrong attempts." in page

    def test_a_dead_web_server_is_restarted_with_one_log_line(self, plain):
        headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
        counted = re.compile(
            r'^chatsite_requests_total{method="GET",route="metrics",status="200"} (\d+)$', re.M
        )
        before = [
            counted.search(plain.session().request("GET", "/metrics", headers=headers).text) for _ in range(3)
        ]
        plain.kill_web()
        plain.wait_until_ready()
        assert plain.lines("The web server was ended by signal 9; it is restarted.") == 1
        page = plain.session().request("GET", "/metrics", headers=headers).text
        assert int(counted.search(page).group(1)) >= int(before[-1].group(1))
        assert 'chatsite_processes{kind="web"} 1' in page

    def test_a_dead_database_is_restarted_with_one_log_line(self, plain):
        before = plain.postgres()
        before.kill()
        before.wait(5)
        deadline = time.monotonic() + HANG_SECONDS
        while plain.postgres() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        plain.wait_until_ready()
        assert plain.session().get("/accounts/sign-in/").status == 200
        assert plain.lines("The database server ended; it was restarted.") == 1

    def test_without_its_database_the_site_is_alive_but_not_ready(self, plain):
        postgres = plain.postgres()
        processes = [postgres, *postgres.children()]
        for process in processes:
            process.suspend()
        try:
            begun = time.monotonic()
            assert plain.session().get("/healthz").status == 200
            answer = plain.session().get("/readyz")
            assert time.monotonic() - begun < 1.5 + MARGIN_SECONDS
            assert answer.status == 503
            assert answer.json()["error"] == "The database does not answer."
        finally:
            for process in processes:
                process.resume()
        plain.wait_until_ready()


WRONG_SETTINGS = (
    ({"OPENAI_API_KEY": "sk-secret"}, "CHAT_MODEL is not"),
    ({"CHAT_MODEL": "small"}, "neither OPENAI_API_KEY nor OPENAI_BASE_URL"),
    ({"EMBEDDING_DIMENSIONS": "many"}, "EMBEDDING_DIMENSIONS must be a number"),
    ({"CHATSITE_TIME_ZONE": "Mars/Base"}, "CHATSITE_TIME_ZONE must be a time zone"),
    ({"CHATSITE_LOG_LEVEL": "loud"}, "CHATSITE_LOG_LEVEL must be one of DEBUG, INFO"),
    (
        {"CHATSITE_ALLOWED_HOSTS": "https://ask.example.org/"},
        "CHATSITE_ALLOWED_HOSTS: write ask.example.org instead of https://ask.example.org/.",
    ),
    ({"CHATSITE_ALLOWED_HOSTS": ","}, "CHATSITE_ALLOWED_HOSTS names no host"),
    ({"CHATSITE_TRUSTED_PROXIES": "nginx"}, "CHATSITE_TRUSTED_PROXIES: write an address such as"),
    ({"CHATSITE_TRUSTED_PROXIES": "10.0.0.1/8"}, "write 10.0.0.0/8 instead of 10.0.0.1/8."),
    (
        {"CHATSITE_TRUSTED_ORIGINS": "ask.example.org"},
        "CHATSITE_TRUSTED_ORIGINS: write https://ask.example.org instead of ask.example.org.",
    ),
    ({"REDIS_URL": "localhost:6379"}, "REDIS_URL must be an address such as redis://"),
    ({"CHATSITE_SECRET_KEY": "secret"}, "CHATSITE_SECRET_KEY is too simple: write at least 32"),
    (
        {"CHATSITE_ALOWED_HOSTS": "ask.example.org"},
        "CHATSITE_ALOWED_HOSTS is not a setting of this site: write CHATSITE_ALLOWED_HOSTS, or",
    ),
    ({"CHATSITE_PORT": "9000"}, "CHATSITE_PORT is not a setting of this site: write PORT"),
    ({"CHATSITE_READER_SECONDS": "1e9"}, "CHATSITE_READER_SECONDS must be at most 2000000"),
    ({"CHATSITE_MEDIA_ROOT": "/proc/files"}, "(CHATSITE_MEDIA_ROOT) /proc/files cannot be written"),
    ({"CHATSITE_MEDIA_ROOT": "~nobody-here/x"}, "CHATSITE_MEDIA_ROOT must be the path of a folder"),
    ({"HOST": "http://0.0.0.0"}, "HOST: write an address such as"),
)


class TestRefusals:
    """One line that says what to do, status 1, no traceback."""

    def refused(self, folder, *words, **environment):
        status, output = quiet(folder, **environment).outcome()
        assert status == 1, output
        assert len(output.strip().splitlines()) == 1, output
        for word in words:
            assert word in output, output
        return output

    def test_a_port_in_use_is_refused(self, folder):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            self.refused(folder, f"Port {port} on 127.0.0.1 is taken", PORT=port)

    def test_an_address_of_another_machine_is_refused(self, folder):
        self.refused(folder, "HOST 192.0.2.1 is not an address of this machine", HOST="192.0.2.1")

    def test_a_port_that_is_not_a_number_is_refused(self, folder):
        self.refused(folder, "PORT must be a number", PORT="http")

    def test_a_file_in_place_of_the_data_directory_is_refused(self, tmp_path):
        (tmp_path / "data").write_text("")
        self.refused(tmp_path / "data", "is not a directory")

    def test_a_read_only_data_directory_is_refused(self):
        self.refused("/proc/chatsite", "The data directory /proc/chatsite cannot be written")

    def test_an_unreachable_database_is_refused(self, folder):
        url = "postgresql://someone:hidden@127.0.0.1:1/nowhere"
        output = self.refused(folder, "The database cannot be reached", DATABASE_URL=url)
        assert "hidden" not in output

    def test_incomplete_and_wrong_settings_are_refused(self, folder):
        for environment, words in sample(WRONG_SETTINGS):
            self.refused(folder, words, **environment)

    @pytest.mark.parametrize(
        ("command", "argument"), [("up", "--web-workers=0"), ("up", "--workers=-1"), ("work", "--workers=0")]
    )
    def test_too_few_processes_are_refused(self, command, argument):
        with pytest.raises(CommandError, match=r"must be a whole number of at least \d"):
            call_command(command, argument)

    def test_workers_of_an_unreachable_database_are_refused(self, monkeypatch):
        monkeypatch.setattr(database_setup, "parameters", lambda: {"host": "127.0.0.1", "port": 1})
        with pytest.raises(SystemExit, match="The database cannot be reached: connection failed"):
            call_command("work")
