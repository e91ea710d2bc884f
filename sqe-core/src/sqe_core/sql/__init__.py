"""Text to statements: dialects, recognition, translation. Nothing outside this package knows sqlglot."""
