"""Replay: what the core makes of recorded logs, topics or files, under the recorded rules or any others."""
