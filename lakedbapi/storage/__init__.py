"""Files and object stores, reached through fsspec."""
