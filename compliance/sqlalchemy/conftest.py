collect_ignore = ["suite"]  # SQLAlchemy's pytest plugin takes the whole run over: it gets a process of its own
