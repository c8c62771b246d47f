"""Mattermost, over its REST API and WebSocket."""
