import os

from hypothesis import settings

pytest_plugins = ["compliance.peers.fixtures", "compliance.delta.fixtures"]

# Time limits of single examples say more about the machine than about the code; CI tries the same examples every time.
settings.register_profile("lake", deadline=None, derandomize=bool(os.environ.get("LAKE_CI")), print_blob=True)
settings.load_profile("lake")
