"""The login providers that need no further dependency: anonymous, API keys, client certificates."""
