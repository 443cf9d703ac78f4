"""A Superset for one run on this machine: SQLite for its own data, no Redis, no Celery."""

import os

SECRET_KEY = "a-test-keeps-no-secrets"
SQLALCHEMY_DATABASE_URI = f"sqlite:///{os.environ['SUPERSET_HOME']}/superset.db?check_same_thread=false"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
