"""Stopping a check from another thread: what takes long asks now and then whether it is still wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Interrupted(BaseException):
    """The check is not wanted any more. Like KeyboardInterrupt it is no error, and nothing may swallow it."""


class Token:
    """Says to whoever works under it that it is to stop."""

    __slots__ = ("_event", "_interrupt", "_lock", "_running")

    def __init__(self, interrupt: Callable[[], None]) -> None:
        """`interrupt` ends a query to the solver that runs in another thread."""
        self._interrupt = interrupt
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._running = False

    def cancel(self) -> None:
        """Stop what works under this token, also inside a query to the solver."""
        self._event.set()
        with self._lock:  # so that the query is one of this run, and not of the next
            if self._running:
                self._interrupt()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def _runs(self, running: bool) -> None:
        with self._lock:
            self._running = running


_current: ContextVar[Token | None] = ContextVar("token", default=None)


@contextmanager
def under(token: Token) -> Iterator[None]:
    """Everything inside stops when the token is cancelled. One run at a time asks the solver."""
    before = _current.set(token)
    token._runs(True)
    try:
        checkpoint()
        yield
    finally:
        token._runs(False)
        _current.reset(before)


def checkpoint() -> None:
    """Raises Interrupted when what runs here is not wanted any more."""
    token = _current.get()
    if token is not None and token.cancelled:
        raise Interrupted
