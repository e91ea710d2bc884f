"""A browser of the tests: fills in Keycloak's forms as somebody would, and follows where it is sent.

    python people.py NAME URL

Everybody's password is their name.
"""

from __future__ import annotations

import html.parser
import sys
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar, DefaultCookiePolicy


class _Forms(html.parser.HTMLParser):
    """The forms of a page: where each goes, and its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append((attributes.get("action", ""), {}))
        elif tag == "input" and self.found and "name" in attributes:
            self.found[-1][1][attributes["name"]] = attributes.get("value", "")


def log_in_as(name: str, url: str) -> str:
    """Open an address, log in, agree to what is asked, and return the last page."""
    # Keycloak's cookies are for https only; browsers take loopback for as good.
    jar = CookieJar(DefaultCookiePolicy(secure_protocols=("http", "https")))
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar), urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as page:
        text, here = page.read().decode(), page.url
    for _ in range(3):
        forms = _Forms()
        forms.feed(text)
        if not forms.found:
            break
        action, fields = forms.found[0]
        if "username" in fields:
            fields = {"username": name, "password": name, "credentialId": ""}
        elif "consent" in action:
            fields = {**{key: value for key, value in fields.items() if key != "cancel"}, "accept": "Yes"}
        else:
            break
        with opener.open(
            urllib.parse.urljoin(here, action), urllib.parse.urlencode(fields).encode(), timeout=60
        ) as page:
            text, here = page.read().decode(), page.url
    return text


if __name__ == "__main__":
    log_in_as(sys.argv[1], sys.argv[2])
