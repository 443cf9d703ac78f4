"""SELECT: what names mean, which files have to be read, and the tables that describe a lake."""
