"""Private attributes of dependencies that the product uses, each with the reason.

A new version of a dependency may change them without notice. Other modules only override the methods in
OVERRIDDEN; `chatsite/tests/code/test_dependency_internals.py` fails for each attribute that is missing or
takes other parameters.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import cookies
from typing import TYPE_CHECKING, Any, cast

from django.utils.functional import empty

if TYPE_CHECKING:  # child processes that read files load neither Django's models nor DRF
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

# Methods of dependencies that the product's subclasses override, by class.
OVERRIDDEN = {
    "django.db.backends.postgresql.base.DatabaseWrapper": {
        "_close": "to note when a session went back to the pool, and to release its bulkhead",
        "_commit": "it rolls back a failed transaction, and thus the session's reader",
        "_rollback": "it undoes the reader that was set in the transaction",
        "_savepoint_rollback": "it undoes the reader that was set after the savepoint",
    },
    "django.db.backends.base.creation.BaseDatabaseCreation": {
        "_destroy_test_db": "to drop a test database in which something still has a session",
    },
    "drf_spectacular.openapi.AutoSchema": {
        "_map_basic_serializer": "to say which bodies refuse unknown members",
    },
}


# The standard library


def waiting_calls(executor: ThreadPoolExecutor) -> int:
    """The number of calls that no thread has begun; executors have no public method for it."""
    return executor._work_queue.qsize()


def replace_cookie_unquote(function: Callable[[str | None], str | None]) -> None:
    """Replace Python's `_unquote`, which Django uses too: see chatsite/http/cookies.py."""
    cookies._unquote = function  # type: ignore[assignment]


# Django and DRF


def django_request(request: "Request") -> "HttpRequest":
    """Django's request, which DRF's request wraps.

    Needed for attributes that middleware sets, and for `ASGIRequest`. DRF's request would pass most
    attributes on, but authenticates when `user` or `auth` is accessed.
    """
    return request._request


def mark_logged(response: "HttpResponseBase") -> None:
    """Keep Django from logging the status of a response whose error was logged already."""
    response._has_been_logged = True  # type: ignore[attr-defined]


def close_with(response: "HttpResponseBase", close: Callable[[], None]) -> None:
    """Call `close` when the response is closed, even if its body was never iterated."""
    response._resource_closers.append(close)  # type: ignore[attr-defined]


def is_evaluated(lazy: object) -> bool:
    """Whether a lazy object was used; true for any other object."""
    return getattr(lazy, "_wrapped", None) is not empty


def set_messages(request: "HttpRequest", storage: object) -> None:
    """Give the request a message storage, as Django's middleware does."""
    request._messages = storage  # type: ignore[attr-defined]


def messages_of(request: "HttpRequest") -> Any:
    """The message storage of a request that has one; `get_messages` accepts any request."""
    return request._messages  # type: ignore[attr-defined]


def delete_rows(queryset: "QuerySet[Any]") -> None:
    """Delete in one statement; `delete` would fetch the rows if other tables refer to them."""
    queryset._raw_delete(queryset.db)


def serializer_schema(auto_schema: Any, serializer: Any, direction: Any) -> dict[str, Any]:
    """The generated schema of a serializer, for a drf-spectacular extension to change."""
    return cast(dict[str, Any], auto_schema._map_serializer(serializer, direction, bypass_extensions=True))


# PostgreSQL: Django's backend, psycopg and its pool


def maintenance_cursor(creation: Any) -> Any:
    """A cursor on the maintenance database `postgres`, as a context manager.

    From there, other databases can be dropped.
    """
    return creation._nodb_cursor()


def connection_pools(wrapper: Any) -> list[Any]:
    """All existing pools of this process; `wrapper.pool` would open one."""
    return list(wrapper._connection_pools.values())


class _LastReturnedFirst(deque[Any]):
    """A pool's queue of idle sessions, which the pool takes from the left."""

    append = deque.appendleft


def hand_out_last_returned(pool: Any) -> None:
    """Let a pool hand out the session that was returned last, instead of all sessions in turn."""
    with pool._lock:
        pool._pool = _LastReturnedFirst(pool._pool)


def check_open(session: Any) -> None:
    """Raise psycopg's error if the session is closed or broken; `send_query` does not check this."""
    session._check_connection_ok()


def autocommit_messages(session: Any, value: bool) -> Iterator[Any]:
    """Set autocommit. The iterator would yield to wait for the server, but no wait is needed."""
    return cast(Iterator[Any], session._set_autocommit_gen(value))


# Files and servers


def sheet_source(sheet: Any) -> Any:
    """The XML file of a sheet, to find merged cells: openpyxl drops them when it reads row by row."""
    return sheet._get_source()
