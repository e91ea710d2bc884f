"""The procedures of `CALL catalog.system.…`: one module each; `query/statements/call.py` finds them."""
