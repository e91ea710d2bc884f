"""Contract tests for plugin vendors, and fakes of the core."""
