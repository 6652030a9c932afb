"""A simple browser for tests that talk to the real server."""

import http.client
import json
import socket
from urllib.parse import urlencode, urlsplit

from websockets.sync.client import connect

from chatsite.tests.limits import HANG_SECONDS


class Response:
    """A response that was read to its end."""

    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)


class Session:
    """A simple browser: keeps cookies and sends CSRF tokens, but does not follow redirects."""

    def __init__(self, url):
        self.host = urlsplit(url).hostname
        self.port = urlsplit(url).port
        self.cookies = {}

    def headers(self, more=None):
        headers = {"Host": f"{self.host}:{self.port}"}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if "csrftoken" in self.cookies:
            headers["X-CSRFToken"] = self.cookies["csrftoken"]
        return headers | (more or {})

    def request(self, method, path, body=None, headers=None, timeout=HANG_SECONDS):
        """The whole response to a request."""
        connection, response = self.stream(method, path, body, headers, timeout)
        try:
            return Response(response, response.read())
        finally:
            connection.close()

    def stream(self, method, path, body=None, headers=None, timeout=HANG_SECONDS):
        """A response of which only the head was read; the caller closes the connection."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        connection.request(method, path, body=body, headers=self.headers(headers))
        response = connection.getresponse()
        for line in response.headers.get_all("Set-Cookie") or []:
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name] = value
        return connection, response

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, fields):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, urlencode(fields).encode(), kind)

    def post_json(self, path, value):
        return self.request("POST", path, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def websocket(self, path):
        """A connected WebSocket with this session's cookies; use it with `with`."""
        return connect(
            f"ws://{self.host}:{self.port}{path}",
            additional_headers={"Cookie": self.headers().get("Cookie", "")},
            origin=f"http://{self.host}:{self.port}",
            proxy=None,
        )

    def socket(self):
        return socket.create_connection((self.host, self.port), timeout=HANG_SECONDS)
