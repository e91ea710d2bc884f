"""TOML and environment to frozen dataclasses, every fault reported at once."""
