"""Sessions: who is connected, their current names and settings, and how long."""
