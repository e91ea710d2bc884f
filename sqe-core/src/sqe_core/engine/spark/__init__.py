"""Spark as the engine. Nothing outside this package knows Spark or py4j."""
