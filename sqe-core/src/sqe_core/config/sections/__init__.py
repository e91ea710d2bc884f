"""One frozen dataclass per table of the configuration file."""
