"""The engine's one lock."""

from __future__ import annotations

from threading import Lock, get_ident

__all__ = ["EngineLock"]


class EngineLock:
    """A fair reentrant lock.

    The loop thread releases the lock for a moment in each turn. A plain `RLock` would mostly give it back to
    a busy loop before a waiting thread has woken up. Here every thread takes a second lock, the turnstile,
    first. A thread that waits for the lock holds the turnstile, so the loop queues behind a waiting test
    thread.
    """

    __slots__ = ("_lock", "_owner", "_turnstile", "depth")

    def __init__(self) -> None:
        self._turnstile = Lock()
        self._lock = Lock()
        self._owner: int | None = None
        self.depth = 0

    def held(self) -> bool:
        """Whether the calling thread holds the lock."""
        return self._owner == get_ident()

    def acquire(self) -> None:
        """Take the lock, or increase its depth if this thread holds it."""
        me = get_ident()
        if self._owner == me:
            self.depth += 1
            return
        with self._turnstile:
            self._lock.acquire()
        self._owner = me
        self.depth = 1

    def release(self) -> None:
        """Decrease the depth; the outermost level releases the lock."""
        if self._owner != get_ident():
            raise RuntimeError("the engine lock is released by a thread that does not hold it")
        self.depth -= 1
        if self.depth == 0:
            self._owner = None
            self._lock.release()

    def release_all(self) -> int:
        """Release the lock at any depth, and return the depth: 0 if this thread does not hold the lock."""
        if self._owner != get_ident():
            return 0
        depth, self.depth, self._owner = self.depth, 0, None
        self._lock.release()
        return depth

    def acquire_again(self, depth: int) -> None:
        """Undo `release_all`."""
        if depth:
            self.acquire()
            self.depth = depth

    def after_fork(self) -> None:
        """In a forked child: drop the locks of threads that do not exist here, and keep this thread's."""
        self._turnstile = Lock()
        self._lock = Lock()
        if self.held():
            self._lock.acquire()
        else:
            self._owner = None
            self.depth = 0
