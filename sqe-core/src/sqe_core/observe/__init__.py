"""Query history, metrics, audit, health."""
