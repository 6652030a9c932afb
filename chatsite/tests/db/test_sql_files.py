"""Statements from files, with the values of their parameters."""

import uuid
from datetime import UTC, datetime
from unittest import mock

import pytest
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext

from chatsite.db import sql_files
from chatsite.db.sql_files import rows

pytestmark = pytest.mark.django_db

HARD = [
    "",
    "NULL",
    "it's",
    '"',
    "\\",
    "\\'",
    "a,b",
    "{x}",
    "%s",
    "%(a)s",
    "$1",
    "100 %",
    "é漢🙂",
    " x ",
    "--",
]


@pytest.fixture
def folder(tmp_path):
    def write(**statements):
        for name, text in statements.items():
            (tmp_path / f"{name}.sql").write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("kind", "values"),
    {
        "text": HARD,
        "text[]": [HARD, [], ["a", None]],
        "bigint": [0, -1, 2**62],
        "bigint[]": [[0, -1, 2**62], [], [1, None]],
        "double precision": [1.5, -0.1, 1e300, 7],
        "double precision[]": [[1.5, -0.1, 1e300], [1, 2]],
        "boolean": [True, False, None],
        "boolean[]": [[True, False]],
        "uuid": [uuid.uuid4(), None],
        "uuid[]": [[uuid.uuid4()]],
        "timestamptz": [datetime(2026, 11, 22, 12, 30, 1, 5, tzinfo=UTC)],
    }.items(),
)
def test_values_arrive_as_they_are(folder, kind, values):
    statements = folder(echo=f"SELECT :'value'::{kind} AS first, :'value'::{kind} AS second")
    for value in values:
        assert rows("echo", {"value": value}, statements) == [{"first": value, "second": value}]


def test_a_negative_number_begins_no_comment(folder):
    assert rows("less", {"value": -3}, folder(less="SELECT 1 -:value AS found")) == [{"found": 4}]


def test_what_postgresql_cannot_store_is_an_error_of_the_value(folder):
    for value in ("\0", ["\0"]):
        with pytest.raises(DataError):
            rows("echo", {"value": value}, folder(echo="SELECT :'value'::text AS value"))


def test_a_missing_value_is_an_error(folder):
    with pytest.raises(KeyError):
        rows("echo", {}, folder(echo="SELECT :'value'::text AS value"))


def test_a_statement_without_rows_gives_none_and_two_in_one_message_the_second_ones(folder):
    statements = folder(first="SELECT set_config('x.y', :'a', true)", second="SELECT :b::int AS b")
    assert rows("second", {"a": "1", "b": 2}, statements, after="first") == [{"b": 2}]
    assert rows("notice", {}, folder(notice="SET LOCAL work_mem = '4MB'")) == []


def test_a_value_is_written_once_however_often_a_statement_names_it(folder):
    statements = folder(long=" UNION ALL ".join(["SELECT :'value'::timestamptz AS value"] * 200))
    with (
        mock.patch.object(sql_files, "_quoted", wraps=sql_files._quoted) as written,
        CaptureQueriesContext(connection) as asked,
    ):
        assert len(rows("long", {"value": datetime(2026, 11, 22, tzinfo=UTC)}, statements)) == 200
    assert written.call_count == 1
    assert len(asked) == 1
