"""Wire protocols that need no dependency of their own."""
