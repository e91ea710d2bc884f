"""What the plugins of SQE that speak HTTP share: connections with a deadline, and a circuit breaker."""

__version__ = "0.1.0"
