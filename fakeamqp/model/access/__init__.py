"""Accounts: who may log in, and what each user may do."""
