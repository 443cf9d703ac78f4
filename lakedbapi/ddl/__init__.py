"""Schemas, tables, views and columns: statements become staged changes of the open transaction."""
