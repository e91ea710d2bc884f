"""These tests belong to a distribution of its own: they run where it is installed (tests/integration does that)."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("acme_sqe") else ["tests"]
