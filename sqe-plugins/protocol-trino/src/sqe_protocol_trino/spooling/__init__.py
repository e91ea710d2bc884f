"""Results as segments that clients fetch by themselves: Trino's spooling protocol (docs/adr/0018)."""
