"""`deploy/health.py`, which a container runs to learn whether its site accepts requests."""

import http.server
import os
import subprocess
import sys
import threading

import pytest

from chatsite.tests.server import BASE


@pytest.fixture
def site():
    """A server on this machine that is ready, and remembers the hosts of its requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            hosts.append(self.headers["Host"])
            self.send_response(200 if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *arguments):
            """Write nothing."""

    hosts: list[str] = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, hosts
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("allowed", "host"),
    [
        (None, "127.0.0.1"),
        ("ask.example.org,127.0.0.1", "ask.example.org"),
        (".example.org", "example.org"),
        ("*", "127.0.0.1"),
        ("*, ask.example.org", "ask.example.org"),
    ],
)
def test_a_ready_site_is_healthy_whatever_its_hosts_and_the_proxy_are(site, allowed, host):
    port, hosts = site
    environment = os.environ | {"PORT": str(port), "http_proxy": "http://127.0.0.1:9", "no_proxy": ""}
    environment.pop("CHATSITE_ALLOWED_HOSTS", None)
    if allowed is not None:
        environment["CHATSITE_ALLOWED_HOSTS"] = allowed
    subprocess.run([sys.executable, BASE / "deploy" / "health.py"], env=environment, check=True)
    assert hosts == [host]


def test_a_site_that_does_not_answer_is_not_healthy():
    environment = os.environ | {"PORT": "9"}
    done = subprocess.run(
        [sys.executable, BASE / "deploy" / "health.py"],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "Connection refused" in done.stderr
    assert "Traceback" not in done.stderr
