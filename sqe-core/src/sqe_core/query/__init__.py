"""The one use case: admit, parse, authorise, secure, execute, stream, record."""
