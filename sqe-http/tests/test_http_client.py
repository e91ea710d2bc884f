"""The client: what it asks again, what it never does, and what it costs. Time has its own tests (deadline)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from testbed.making import each_ended

from sqe_http.breaker import Breaker
from sqe_http.client import Answer, Bounds, HttpClient
from sqe_http.deadline import Tls
from sqe_http.errors import HttpFailedError, Reason
from sqe_http.testing import HttpFake, Reply, Request


class Server(HttpFake):
    """Says OK."""

    def honest(self, request: Request) -> Reply:
        return Reply(body=b"OK")

    def answer_in_turn(self, *replies: dict[str, Any]) -> None:
        """Answer with these, and honestly after the last one."""
        left = iter(replies)
        self.reply = lambda request: next((Reply(**reply) for reply in left), None)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def client() -> Iterator[Callable[..., HttpClient]]:
    yield from each_ended(
        lambda *, breaker=None, **bounds: HttpClient(
            "the shop", Bounds(**{"timeout_secs": 10, **bounds}), breaker=breaker, headers={"X-Who": "sqe"}
        )
    )


def ask(client: HttpClient, url: str, **options: Any) -> Answer:
    return client.send("GET", url, read=lambda answer: answer, **options)


def fails(client: HttpClient, url: str, **options: Any) -> HttpFailedError:
    with pytest.raises(HttpFailedError) as failed:
        ask(client, url, **options)
    return failed.value


BUSY = {"status": 503}
BROKEN = {"raw": b""}


def test_a_question_and_its_answer(server: Server, client: Callable[..., HttpClient]) -> None:
    answer = client().send(
        "PUT", f"{server.url}/a/b?c=d", body=b"{}", headers={"X-More": "1"}, read=lambda answer: (answer.status, answer)
    )

    assert answer[0] == 200
    assert (answer[1].body, answer[1].headers["content-length"]) == (b"OK", "2")
    (asked,) = server.requests
    assert (asked.method, asked.target, asked.body) == ("PUT", "/a/b?c=d", b"{}")
    assert (asked.headers["x-who"], asked.headers["x-more"]) == ("sqe", "1")


@pytest.mark.parametrize("first", [BUSY, {"status": 429}, {"status": 502}, {"status": 504}, BROKEN])
def test_what_may_be_repeated_is_asked_again(
    server: Server, client: Callable[..., HttpClient], first: dict[str, Any]
) -> None:
    server.answer_in_turn(first)
    assert ask(client(retries=1), server.url, again=True).body == b"OK"
    assert len(server.requests) == 2


@pytest.mark.parametrize("first", [BUSY, BROKEN])
def test_what_may_not_be_repeated_is_asked_once(
    server: Server, client: Callable[..., HttpClient], first: dict[str, Any]
) -> None:
    """A token, or anything that changes something each time: nobody knows whether the first one arrived."""
    server.answer_in_turn(first)
    if first == BROKEN:
        assert fails(client(retries=3), server.url).reason is Reason.UNREACHABLE
    else:
        assert ask(client(retries=3), server.url).status == 503
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [{"status": 500}, {"status": 404}, {"status": 302}, {"body": b"x" * 1000}])
def test_what_would_be_the_same_again_is_asked_once(
    server: Server, client: Callable[..., HttpClient], reply: dict[str, Any]
) -> None:
    server.misbehave(**reply)
    with suppress(HttpFailedError):
        ask(client(retries=3, answer_bytes=100), server.url, again=True)
    assert len(server.requests) == 1


def test_where_busy_is_an_answer_it_is_not_asked_again(server: Server, client: Callable[..., HttpClient]) -> None:
    server.misbehave(**BUSY)
    assert ask(client(retries=3, busy_again=False), server.url, again=True).status == 503
    assert len(server.requests) == 1


def test_a_server_that_wants_to_be_left_alone_longer_than_there_is_time_is_left_alone(
    server: Server, client: Callable[..., HttpClient]
) -> None:
    server.misbehave(status=429, headers={"Retry-After": "3600"})
    began = time.monotonic()
    answer = ask(client(retries=3), server.url, again=True)
    assert (answer.status, answer.retry_after_secs) == (429, 3600)
    assert time.monotonic() - began < 5
    assert len(server.requests) == 1


@pytest.mark.parametrize("text", ["", "soon", "-1", "9" * 400, "Mon, 99 Abc 2020"])
def test_a_retry_after_that_is_none(text: str) -> None:
    assert Answer(status=429, headers={"retry-after": text}, body=b"").retry_after_secs == 0


def test_all_tries_together_have_one_time(server: Server, client: Callable[..., HttpClient]) -> None:
    server.misbehave(wait_secs=0.3, raw=b"")
    began = time.monotonic()
    fails(client(timeout_secs=0.5, retries=100), server.url, again=True)
    assert time.monotonic() - began < 2
    assert len(server.requests) <= 3


def test_whose_time_is_over_does_not_ask(server: Server, client: Callable[..., HttpClient]) -> None:
    failure = fails(client(), server.url, deadline=time.monotonic() - 1)
    assert (failure.reason, failure.of_server) == (Reason.LATE, False)
    assert not server.requests


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_never_followed(server: Server, client: Callable[..., HttpClient], status: int) -> None:
    server.misbehave(status=status, headers={"Location": f"{server.url}/elsewhere"})
    assert fails(client(retries=3), server.url, again=True).reason is Reason.REDIRECTED
    assert len(server.requests) == 1


def test_not_modified_is_no_redirect(server: Server, client: Callable[..., HttpClient]) -> None:
    server.misbehave(status=304)
    assert ask(client(), server.url).status == 304


def test_an_answer_as_large_as_allowed_is_read_and_a_larger_one_is_not(
    server: Server, client: Callable[..., HttpClient]
) -> None:
    server.misbehave(body=b"x" * 100)
    assert len(ask(client(answer_bytes=100), server.url).body) == 100
    failure = fails(client(answer_bytes=99), server.url)
    assert (failure.reason, str(failure)) == (Reason.TOO_LARGE, "The shop answered with more than 99 bytes")


def test_an_answer_without_an_end_is_bounded(server: Server, client: Callable[..., HttpClient]) -> None:
    server.misbehave(raw=b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5_000_000)
    assert fails(client(), server.url).reason is Reason.TOO_LARGE


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    "reply", [BROKEN, {"status": 302}, {"raw": b"SSH-2.0 canary\r\n"}, {"body": b"canary" * 99_999}, {"wait_secs": 9}]
)
def test_what_fails_is_told_without_what_was_sent(
    server: Server, client: Callable[..., HttpClient], reply: dict[str, Any]
) -> None:
    server.misbehave(**reply)
    failure = fails(client(timeout_secs=1), f"{server.url}/path?token=canary", headers={"Authorization": "canary"})
    assert "canary" not in f"{failure} {failure!r}"
    assert "127.0.0.1" not in str(failure)


def test_a_client_asks_the_hosts_that_it_may(server: Server, client: Callable[..., HttpClient]) -> None:
    """Addresses come from metadata of strangers; each host keeps connections."""
    asking = client(hosts=1)
    ask(asking, server.url)
    assert fails(asking, server.url.replace("127.0.0.1", "localhost")).reason is Reason.CROWDED


def test_connections_are_used_again_and_closed(server: Server, client: Callable[..., HttpClient]) -> None:
    asking = client()
    for _ in range(3):
        ask(asking, server.url)
    assert server.connections == 1
    asking.close()
    ask(asking, server.url)
    assert server.connections == 2


def test_an_answer_that_its_reader_refuses_counts_for_the_breaker(
    server: Server, client: Callable[..., HttpClient]
) -> None:
    asking = client(breaker=Breaker("The shop", 2, 60))

    def refuse(answer: Answer) -> None:
        raise HttpFailedError(Reason.UNREADABLE, "No JSON")

    for _ in range(2):
        with pytest.raises(HttpFailedError, match="No JSON"):
            asking.send("GET", server.url, read=refuse)
    assert fails(asking, server.url).reason is Reason.SPARED
    assert len(server.requests) == 2


def test_what_is_not_the_servers_fault_does_not_count(server: Server, client: Callable[..., HttpClient]) -> None:
    asking = client(breaker=Breaker("The shop", 1, 60), answer_bytes=1)

    def stumble(answer: Answer) -> None:
        raise RuntimeError

    fails(asking, server.url)
    server.misbehave(body=b"")
    with pytest.raises(RuntimeError):
        asking.send("GET", server.url, read=stumble)
    assert ask(asking, server.url).status == 200


def test_files_of_tls_are_read_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        HttpClient("it", Bounds(timeout_secs=1), tls=Tls(ca_file=tmp_path / "none.pem"))


def test_a_proxy_of_the_environment_counts_where_a_client_says_so(
    client: Callable[..., HttpClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plugins ask whom the configuration names; the command line is on somebody's desk."""
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    through = HttpClient("it", Bounds(timeout_secs=5), proxies=True)
    direct = HttpClient("it", Bounds(timeout_secs=5))
    assert through._pool("it", "https://far.example/").proxy is not None
    assert direct._pool("it", "https://far.example/").proxy is None
    through.close()
    direct.close()
