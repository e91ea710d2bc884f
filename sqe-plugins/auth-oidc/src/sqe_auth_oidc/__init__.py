"""Logins with OpenID Connect and OAuth 2: passwords, tokens, browsers and devices, judged by an identity provider."""

__version__ = "0.1.0"
