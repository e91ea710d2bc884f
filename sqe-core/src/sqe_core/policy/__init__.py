"""Decisions of the policy engines, combined restrictively."""
