"""The grammar of the statements that are no query: DDL, SHOW, grants, ATTACH, sessions."""
