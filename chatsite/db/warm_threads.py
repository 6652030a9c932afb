"""A thread pool whose most recently used idle thread takes the next call.

An answer uses a database thread several times, for some milliseconds each. The standard library's executor
would wake the thread that has been idle for longest, whose stack, allocator and database objects are no
longer in the processor's caches.
"""

import atexit
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Call = tuple["Future[Any]", Callable[[], Any]]


class WarmThreads(Executor):
    """An executor with at most `max_workers` threads; starts a thread only if no other is idle."""

    def __init__(self, max_workers: int, name: str) -> None:
        self.max_workers = max_workers
        self._name = name
        self._lock = Lock()
        self._idle: list[_Worker] = []  # the thread that worked last is at the end
        self._waiting: deque[Call] = deque()
        self._workers: list[_Worker] = []
        self._over = False
        atexit.register(self.shutdown)

    @property
    def waiting(self) -> int:
        """The number of calls that no thread has begun."""
        return len(self._waiting)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        future: Future[T] = Future()
        call: Call = future, lambda: function(*args, **kwargs)
        with self._lock:
            if self._over:
                raise RuntimeError("The thread pool was shut down.")
            if self._idle:
                self._idle.pop().give(call)
            elif len(self._workers) < self.max_workers:
                worker = _Worker(self._next, call, f"{self._name}_{len(self._workers)}")
                self._workers.append(worker)
                worker.start()
            else:
                self._waiting.append(call)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls. With `wait`, return when all accepted calls have ended."""
        with self._lock:
            self._over = True
            while cancel_futures and self._waiting:
                self._waiting.popleft()[0].cancel()
            while self._idle:
                self._idle.pop().give(None)
        for worker in self._workers if wait else ():
            worker.join()

    def _next(self, worker: "_Worker") -> None:
        """Give a thread its next call; if no call waits, note the thread as idle, or end it."""
        with self._lock:
            if self._waiting:
                worker.give(self._waiting.popleft())
            elif self._over:
                worker.give(None)
            else:
                self._idle.append(worker)


class _Worker(Thread):
    def __init__(self, finished: Callable[["_Worker"], None], first: Call, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._finished = finished
        self._call: Call | None = first
        self._given = Lock()  # held while there is no call to begin

    def give(self, call: Call | None) -> None:
        """Let the thread run this call; None ends the thread."""
        self._call = call
        self._given.release()

    def run(self) -> None:
        self._given.acquire()
        while self._call is not None:
            future, function = self._call
            if future.set_running_or_notify_cancel():
                try:
                    result = function()
                except BaseException as error:
                    future.set_exception(error)
                    del error
                else:
                    future.set_result(result)
                    del result
            del future, function
            self._call = None
            self._finished(self)
            self._given.acquire()
