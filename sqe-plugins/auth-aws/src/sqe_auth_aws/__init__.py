"""Logins with AWS keys, judged by AWS's Security Token Service."""

__version__ = "0.1.0"
