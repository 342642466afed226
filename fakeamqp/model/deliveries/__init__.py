"""Deliveries, and the subscriptions and credit that they are made for."""
