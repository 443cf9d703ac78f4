pytest_plugins = ["compliance.peers.fixtures"]
