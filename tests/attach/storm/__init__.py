"""A storm over one file: processes that share it are killed and stopped, hosts above all; every call is recorded."""
