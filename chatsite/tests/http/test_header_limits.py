"""Headers that are parsed on the event loop: bounded in size, and cookies in linear time."""

import socket
import time
from http import cookies

import pytest
from django.http import parse_cookie

from chatsite.http.cookies import unquote

QUOTED = [
    '"',
    "plain",
    '""',
    '"a b"',
    '"a\\"b"',
    '"\\054\\073"',
    '"\\\\"',
    '"\\',
    '"a\\',
    '"é\\"ü"',
    "",
    None,
]
HOSTILE = [
    ("Cookie", "a=" + "b" * 17_000),
    ("Content-Type", "multipart/form-data;" + ";" * 1_100),
    ("Accept", "text/html;" + ";" * 4_200),
]


@pytest.mark.parametrize("value", QUOTED)
def test_a_quoted_cookie_means_what_the_standard_library_says(value):
    expected = {
        '"a\\"b"': 'a"b',
        '"\\054\\073"': ",;",
        '"\\\\"': "\\",
        '"a b"': "a b",
        '"é\\"ü"': 'é"ü',
        '""': "",
    }
    assert unquote(value) == expected.get(value, value)


def test_django_and_the_standard_library_use_the_linear_function():
    assert cookies._unquote is unquote


@pytest.mark.slow
def test_cookies_with_backslashes_take_linear_time():
    def seconds(length):
        def once():
            begun = time.thread_time()
            parse_cookie('a="' + '\\"' * length + '"')
            return time.thread_time() - begun

        return min(once() for _ in range(5))

    assert seconds(200_000) < 10 * seconds(50_000) + 0.01


@pytest.mark.server
@pytest.mark.parametrize(("name", "value"), HOSTILE)
def test_an_overlong_header_is_refused_before_it_is_read(site, name, value):
    assert status_of(site, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n{name}: {value}\r\n\r\n") == 431


@pytest.mark.server
def test_two_halves_of_a_cookie_count_together(site):
    half = "Cookie: a=" + "b" * 9_000 + "\r\n"
    assert status_of(site, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n{half}{half}\r\n") == 431


@pytest.mark.server
def test_a_handshake_with_an_invalid_line_is_refused(site):
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    upgrade += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Long: " + "x" * 9_000
    assert status_of(site, f"GET /ws/c/x/ HTTP/1.1\r\nHost: 127.0.0.1\r\n{upgrade}\r\n\r\n") == 431


def status_of(site, head):
    session = site.session()
    with socket.create_connection((session.host, session.port), timeout=10) as connection:
        connection.sendall(head.encode())
        return int(connection.recv(1_000).split()[1])
