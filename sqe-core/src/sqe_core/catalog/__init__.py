"""Mounted catalogs, names, metadata answers, information_schema."""
