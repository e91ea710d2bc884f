"""The threads that serve calls, and who gets one (LIM-2).

Beyond its bound on calls gRPC for Python refuses without our code, and lets a call wait that nobody has logged in for.
So calls are counted here, where they are dispatched. A handshake that brings its login in a message waits for somebody
whom nobody knows yet: it has threads of its own, never one of those that serve users.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn

import grpc

from sqe_core.spi.errors import ResourcesError, SqeError

_OLD_HANDSHAKE_THREADS = 16
# Those beyond what one address may have are refused as soon as they have a thread; so many wait for that.
_OLD_HANDSHAKES_QUEUED = 64
_RETRY_SECS = 1

Behavior = Callable[[Iterator[bytes], grpc.ServicerContext], Any]


class CallPool(ThreadPoolExecutor):
    """Threads that know how many calls they have.

    Args:
        threads: how many there are.
        queued: how many calls may wait for one.
        name: what the threads are called.
    """

    def __init__(self, threads: int, queued: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self.most = threads + queued
        self._count = 0
        self._count_lock = threading.Lock()

    @property
    def full(self) -> bool:
        """Whether it should get no more calls."""
        return self._count >= self.most

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        with self._count_lock:
            self._count += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, future: Future[Any]) -> None:
        with self._count_lock:
            self._count -= 1


class _AtOnce(ThreadPoolExecutor):
    """No threads: runs what never waits where it is submitted, so that refusals need no bound of their own."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - as a pool does
            future.set_exception(error)
        return future


class CallPools:
    """All of them.

    Args:
        most: how many calls of users there may be.
    """

    def __init__(self, most: int) -> None:
        self.users = CallPool(most, 0, "sqe-flight")
        self.old_handshakes = CallPool(_OLD_HANDSHAKE_THREADS, _OLD_HANDSHAKES_QUEUED, "sqe-flight-hello")

    @property
    def most(self) -> int:
        """How many calls gRPC may let in: these never are so many, as one that is refused is over at once."""
        return self.users.most + self.old_handshakes.most + 1

    def shutdown(self) -> None:
        for pool in (self.users, self.old_handshakes):
            pool.shutdown(wait=False, cancel_futures=True)


class BoundedCalls:
    """Gives each call its threads, or has it refused.

    Args:
        methods: finds the method of a call.
        is_old_handshake: whether a call waits for a message of somebody unknown.
        too_many_logins: what such a call is refused with.
        abort: ends a call with an error.
        pools: the threads.
    """

    def __init__(
        self,
        methods: grpc.GenericRpcHandler,
        is_old_handshake: Callable[[grpc.HandlerCallDetails], bool],
        too_many_logins: Callable[[], SqeError],
        abort: Callable[[grpc.ServicerContext, BaseException], NoReturn],
        pools: CallPools,
    ) -> None:
        self._methods = methods
        self._is_old_handshake = is_old_handshake
        self._too_many_logins = too_many_logins
        self._abort = abort
        self._pools = pools

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Find who serves a call. One thread of gRPC asks, and submits what it found before it asks again."""
        found: grpc.RpcMethodHandler | None = self._methods.service(handler_call_details)
        if found is None:
            return None
        if self._is_old_handshake(handler_call_details):
            if self._pools.old_handshakes.full:
                return self._refusal(self._too_many_logins())
            return _on(self._pools.old_handshakes, found)
        if self._pools.users.full:
            return self._refusal(
                ResourcesError(
                    f"The server has {self._pools.users.most} calls open, the most that it takes",
                    hint="try again later",
                    retry_after_secs=_RETRY_SECS,
                )
            )
        return found

    def _refusal(self, error: SqeError) -> grpc.RpcMethodHandler:
        def refuse(requests: Iterator[bytes], context: grpc.ServicerContext) -> NoReturn:
            self._abort(context, error)

        return _on(_AT_ONCE, grpc.stream_stream_rpc_method_handler(refuse))


_AT_ONCE = _AtOnce()


def _on(pool: ThreadPoolExecutor, handler: Any) -> grpc.RpcMethodHandler:
    """Return a handler whose calls run in a pool: grpcio looks for this attribute of a function."""
    behavior: Behavior = handler.stream_stream

    def run(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        return behavior(requests, context)

    run.experimental_thread_pool = pool  # type: ignore[attr-defined]
    return grpc.stream_stream_rpc_method_handler(run, handler.request_deserializer, handler.response_serializer)
