"""The statements that SQE carries out itself: DDL, grants and policies, ATTACH, sessions."""
