"""Slack, over Socket Mode."""
