"""The statements that SQE answers itself from metadata: SHOW, DESCRIBE, CHECK ACCESS, and names for completion."""
