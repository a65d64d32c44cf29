"""Checks in the background: one at a time, in a thread of its own. A newer one of the same file ends the older one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from placelogic.interruption import Interrupted, Token, under

T = TypeVar("T")


class Run(Generic[T]):
    """One piece of work. `result` waits for it: None where it was ended before it was done."""

    def __init__(self, future: Future[T | None], token: Token) -> None:
        self.future = future
        self._token = token

    def end(self) -> None:
        """Stop it, wherever it is; nothing happens where it is done already."""
        if not self.future.done():
            self._token.cancel()


class Runs:
    """The thread, and what each file has in it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "placelogic-check")
        self._current: dict[str, Run] = {}

    def start(self, key: str, work: Callable[[], T]) -> Run[T]:
        """Run the work, in place of what runs under this key. It is ended at the next query to the solver."""
        self.end(key)
        token = Token(_interrupt)

        def guarded() -> T | None:
            try:
                with under(token):
                    return work()
            except Interrupted:
                return None

        run = Run(self._thread.submit(guarded), token)
        self._current[key] = run
        return run

    def end(self, key: str) -> None:
        """Stop what runs under this key."""
        run = self._current.pop(key, None)
        if run is not None:
            run.end()

    def close(self) -> None:
        """Stop everything."""
        for key in list(self._current):
            self.end(key)
        self._thread.shutdown(wait=False, cancel_futures=True)


def _interrupt() -> None:
    from placelogic.prove.solver import interrupt

    interrupt()
