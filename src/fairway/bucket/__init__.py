"""The leaderless queue as pure step machines."""
