"""Runs the broker in an asyncio event loop."""
