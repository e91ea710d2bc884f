"""Queries and DML as a tree: sqlglot's parser, made strict, with the grammar of our dialects."""
