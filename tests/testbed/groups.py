"""Which tests of a run go to one worker, one after the other: those that share what takes long to start."""

from __future__ import annotations

from xdist.scheduler.loadscope import LoadScopeScheduling

_TOGETHER = {
    "tests/clients/": "two servers",
    "tests/identity/": "an identity provider",
    "tests/integration/test_auth_oidc_keycloak.py": "an identity provider",
    "tests/processes/test_process_login.py": "an identity provider",
}


class GroupScheduling(LoadScopeScheduling):
    """A file is a group, but for what is `_TOGETHER`."""

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of a test."""
        for path, group in _TOGETHER.items():
            if nodeid.startswith(path):
                return group
        return nodeid.partition("::")[0]
