"""Malformed requests: a clear refusal, and one log line without a traceback."""

import asyncio
import logging
from io import BytesIO

import pytest
from django.core.exceptions import BadRequest, TooManyFieldsSent
from django.http.multipartparser import MultiPartParserError

from chatsite.http.body_limits import LengthHandler
from chatsite.logs import HostileRequestFilter

PART = b'--B\r\nContent-Disposition: form-data; name="question"\r\n\r\n\xc3\xa9\r\n--B--\r\n'


def request_of(kind, body=PART):
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), (b"host", b"here")]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    return LengthHandler().create_request(scope, BytesIO(body))[0]


@pytest.mark.parametrize("charset", [b"zlib", b"undefined", b"idna", b"hex", b'"rot13"', b"utf-8", b"\xff"])
@pytest.mark.parametrize(
    "form", [b"multipart/form-data; charset=%s; boundary=B", b"multipart/form-data; boundary=B ;CHARSET=%s"]
)
def test_a_form_with_files_is_read_as_utf_8_despite_another_codec(form, charset):
    async def scenario():
        return request_of(form % charset).POST["question"]

    assert asyncio.run(scenario()) == "é"


@pytest.mark.parametrize(
    "error",
    [TooManyFieldsSent("too many"), BadRequest("not UTF-8"), MultiPartParserError("no boundary" * 1_000)],
)
def test_a_malformed_request_is_one_short_warning(error):
    record = logging.LogRecord(
        "django.security", logging.ERROR, "", 1, "%s", (error,), (type(error), error, None)
    )
    assert HostileRequestFilter().filter(record)
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert len(record.getMessage()) < 300


def test_an_internal_error_keeps_its_traceback():
    error = ValueError()
    record = logging.LogRecord("django.request", logging.ERROR, "", 1, "", (), (ValueError, error, None))
    assert HostileRequestFilter().filter(record)
    assert record.exc_info is not None
