"""Evaluators: what makes scores of traces and sessions."""
