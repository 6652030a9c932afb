"""Statements from files, with the values of their parameters."""

import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from unittest import mock

import pytest
from django.db import DataError, NotSupportedError, ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from chatsite.db import sql_files
from chatsite.db.sql_files import prepared, rows, rows_of_each

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
        "double precision": [1.5, -0.1, 1e300, 5e-324, float("-inf"), 7],
        "double precision[]": [[1.5, -0.1, 1e300], [1, 2]],
        "boolean": [True, False, None],
        "boolean[]": [[True, False]],
        "uuid": [uuid.uuid4(), None],
        "uuid[]": [[uuid.uuid4()]],
        "date": [date(2026, 11, 22), date.min],
        "timestamp": [datetime(2026, 11, 22, 12, 30)],
        "timestamptz": [
            datetime(2026, 11, 22, 12, 30, 1, 5, tzinfo=UTC),
            datetime(2026, 11, 22, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        ],
    }.items(),
)
def test_values_arrive_unchanged(folder, kind, values):
    statements = folder(echo=f"SELECT :'value'::{kind} AS first, :'value'::{kind} AS second")
    for value in values:
        assert rows("echo", {"value": value}, statements) == [{"first": value, "second": value}]


def test_a_negative_number_does_not_begin_a_comment(folder):
    for value in (-3, -3.0):
        assert rows("less", {"value": value}, folder(less="SELECT 1 -:value AS found")) == [{"found": 4}]


def test_a_value_that_postgresql_cannot_store_is_an_error(folder):
    for value in ("\0", ["\0"]):
        with pytest.raises(DataError):
            rows("echo", {"value": value}, folder(echo="SELECT :'value'::text AS value"))


def test_a_missing_value_is_an_error(folder):
    with pytest.raises(KeyError):
        rows("echo", {}, folder(echo="SELECT :'value'::text AS value"))


def test_a_message_of_two_statements_returns_the_rows_of_the_second(folder):
    statements = folder(first="SELECT set_config('x.y', :'a', true)", second="SELECT :b::int AS b")
    assert rows("second", {"a": "1", "b": 2}, statements, after="first") == [{"b": 2}]
    assert rows("notice", {}, folder(notice="SET LOCAL work_mem = '4MB'")) == []


def test_a_repeated_parameter_is_sent_once(folder):
    statements = folder(long=" UNION ALL ".join(["SELECT :'value'::interval AS value"] * 200))
    with (
        mock.patch.object(sql_files, "_quoted", wraps=sql_files._quoted) as written,
        CaptureQueriesContext(connection) as asked,
    ):
        assert len(rows("long", {"value": timedelta(days=2)}, statements)) == 200
    assert written.call_count == 1
    assert len(asked) == 1


PLANNED = "SELECT count(*) FROM pg_prepared_statements WHERE name = %s"


def planned(text):
    with connection.cursor() as cursor:
        cursor.execute(PLANNED, [text.name])
        return cursor.fetchone()[0]


def test_values_of_a_prepared_statement_arrive_unchanged(folder):
    echo = prepared("echo", folder(echo="SELECT :'value'::text AS first, :'value' AS second, '%' AS third"))
    for value in [*HARD, None]:
        assert rows_of_each([echo], {"value": value}) == [[{"first": value, "second": value, "third": "%"}]]
    assert planned(echo) == 1


def test_a_prepared_statement_is_planned_with_its_constants_and_runs_beside_others(folder):
    folder = folder(sum="SELECT :one + :other AS found", one="SELECT 1 AS found")
    first, second = (prepared("sum", folder, (("one", number),)) for number in (-1, 2))
    assert first.name != second.name
    found = rows_of_each([first, prepared("one", folder), second], {"other": -3})
    assert found == [[{"found": -4}], [{"found": 1}], [{"found": -1}]]


def test_a_statement_stays_prepared_when_its_transaction_is_rolled_back(folder):
    halves = prepared("halves", folder(halves="SELECT 1 / :'value'::int AS found"))
    for _ in range(2):
        with pytest.raises(DataError), transaction.atomic():
            rows_of_each([halves], {"value": 0})
        assert rows_of_each([halves], {"value": 1}) == [[{"found": 1}]]


def test_a_statement_that_cannot_be_prepared_is_an_error_each_time(folder):
    wrong = prepared("wrong", folder(wrong="SELECT missing FROM :'value'::text"))
    for _ in range(2):
        with pytest.raises(ProgrammingError), transaction.atomic():
            rows_of_each([wrong], {"value": "x"})


def test_without_prepared_statements_the_text_is_executed(folder):
    echo = prepared("text", folder(text="SELECT :'value'::text AS found, :kept AS kept"), (("kept", 7),))
    with CaptureQueriesContext(connection):
        assert rows_of_each([echo], {"value": "a", "kept": 7}) == [[{"found": "a", "kept": 7}]]
    assert planned(echo) == 0


@pytest.mark.django_db(transaction=True)
def test_a_session_with_outdated_prepared_statements_is_replaced(folder):
    every = prepared("every", folder(every="SELECT * FROM changing"))
    try:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE changing AS SELECT 1 AS one")
            assert rows_of_each([every], {}) == [[{"one": 1}]]
            cursor.execute("ALTER TABLE changing ALTER one TYPE text")
        with pytest.raises(NotSupportedError):
            rows_of_each([every], {})
        connection.close()  # as at the end of each piece of work
        assert rows_of_each([every], {}) == [[{"one": "1"}]]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE changing")
