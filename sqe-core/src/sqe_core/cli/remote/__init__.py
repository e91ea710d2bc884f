"""A session on a server, over Arrow Flight SQL."""
