"""Benchmarks of SQE."""
