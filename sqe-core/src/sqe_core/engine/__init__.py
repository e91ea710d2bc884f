"""The engine: `port.py` is what the rest of SQE sees; `spark` is the one that exists."""
